#!/usr/bin/env python
"""Django's command line for Kiln; ``kiln manage`` is the same without a checkout."""

from __future__ import annotations

import sys

from codegen_app.platform.command_line import manage

if __name__ == "__main__":
    sys.exit(manage(sys.argv[1:], "manage.py"))
