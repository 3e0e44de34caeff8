#!/usr/bin/env python
"""Django's command line for Kiln."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.config.settings")
    from django.conf import settings  # noqa: PLC0415
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    try:
        var = settings.VAR_DIR
    except ImproperlyConfigured as error:
        sys.exit(f"kiln: {error}")
    # The demo decides by itself.
    if sys.argv[1:2] != ["demo"]:
        from codegen_app import system_user  # noqa: PLC0415

        system_user.act_for(var)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
