"""What the web server has before its processes are made."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.processes import worker_environment
from tests.support import every_page
from tests.support.pages_world import World

ROOT = Path(__file__).parents[3]
_LOADED = """
import gc, sys
import codegen_app.platform.config.wsgi
from codegen_app.platform.config import web
assert web.preload_app
assert "codegen_app.site.urls" in sys.modules, "the first request would import the pages"
loaded = len(gc.get_objects())
web.when_ready(None)
assert gc.get_freeze_count() > loaded / 2, "collections go through what is loaded for good"
"""
# Prints what the first requests of a process import and which templates they compile.
_FIRST_REQUESTS = """
import sys
import codegen_app.platform.config.wsgi
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.template import engines
from django.test import Client
assert connection.connection is None, "processes would share a connection"
plain = "django.contrib.staticfiles.storage.StaticFilesStorage"  # no files were collected here
settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": plain}}
(loader,) = engines["django"].engine.template_loaders
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.get(username="admin-of-pages"))
modules, templates = set(sys.modules), set(loader.get_template_cache)
for address in sys.argv[1:]:
    client.get(address)
new = {name for name in set(sys.modules) - modules if not name.startswith("encodings")}
print(*sorted(new | {str(key) for key in set(loader.get_template_cache) - templates}))
"""


@pytest.mark.full
def test_pages_are_loaded_once_for_all_processes_of_the_server() -> None:
    environment = {**os.environ, "KILN_SECRET_KEY": secrets.token_urlsafe(48)}
    subprocess.run([sys.executable, "-c", _LOADED], env=environment, check=True)


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_the_first_request_of_a_page_imports_and_compiles_nothing(
    world: World, tmp_path: Path
) -> None:
    every_page.furnish(world.graph)
    environment = {
        **worker_environment(tmp_path, "memory://"),
        **{"KILN_SECRET_KEY": secrets.token_urlsafe(48), "KILN_PAGES_KEPT_MIB": "0"},
    }
    printed = subprocess.run(
        [sys.executable, "-c", _FIRST_REQUESTS, *every_page.available()[0].values()],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert printed.stdout == "\n"
