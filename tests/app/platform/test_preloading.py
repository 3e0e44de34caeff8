"""What the web server has before its processes are made."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

_PROGRAM = """
import gc, sys
import codegen_app.platform.config.wsgi
from codegen_app.platform.config import web
assert web.preload_app
assert "codegen_app.site.urls" in sys.modules, "the first request would import the pages"
loaded = len(gc.get_objects())
web.when_ready(None)
assert gc.get_freeze_count() > loaded / 2, "collections go through what is loaded for good"
"""


@pytest.mark.full
def test_pages_are_loaded_once_for_all_processes_of_the_server() -> None:
    given = {**os.environ, "KILN_SECRET_KEY": secrets.token_urlsafe(48)}
    subprocess.run([sys.executable, "-c", _PROGRAM], env=given, check=True)
