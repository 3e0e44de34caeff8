#!/usr/bin/env python
"""Django's command line for Kiln."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.config.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    # The demo decides by itself.
    if sys.argv[1:2] != ["demo"]:
        from django.conf import settings  # noqa: PLC0415

        from codegen_app import system_user  # noqa: PLC0415

        system_user.act_for(settings.VAR_DIR)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
