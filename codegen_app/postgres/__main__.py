"""``python -m codegen_app.postgres remove``: stop the servers of the checkout, or of the
user's own folder, and delete their data."""

import sys

from codegen_app.config import env
from codegen_app.config.layout import LAYOUT
from codegen_app.postgres import remove

if sys.argv[1:] != ["remove"]:
    sys.exit("usage: python -m codegen_app.postgres remove")
remove(env.folder("KILN_VAR", LAYOUT.data(env.text("XDG_DATA_HOME")), environ={}))
