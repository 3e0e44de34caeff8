"""``python -m codegen_app``: the command ``kiln``."""

from __future__ import annotations

import sys

from codegen_app.platform.command_line import main

if __name__ == "__main__":
    sys.exit(main())
