"""``python -m codegen_app.postgres remove``: stop the checkout's servers and delete their data."""

import sys
from pathlib import Path

from codegen_app.postgres import remove

if sys.argv[1:] != ["remove"]:
    sys.exit("usage: python -m codegen_app.postgres remove")
remove(Path(__file__).resolve().parents[2] / "var")
