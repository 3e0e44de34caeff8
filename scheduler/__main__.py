"""``python -m scheduler``: the engine's command line, without database or web server."""

from __future__ import annotations

import sys

from scheduler.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
