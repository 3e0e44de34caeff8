"""``python -m codegen_app.platform.postgres remove``: stop the servers of the checkout, or of the
user's own folder, and delete their data."""

import sys

from codegen_app.platform.config import env
from codegen_app.platform.config.layout import LAYOUT
from codegen_app.platform.postgres import remove

if sys.argv[1:] != ["remove"]:
    sys.exit("usage: python -m codegen_app.platform.postgres remove")
remove(env.folder("KILN_VAR", LAYOUT.data(env.text("XDG_DATA_HOME")), environ={}))
