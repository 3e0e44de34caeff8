"""Write what users get into a folder: ``SNAPSHOT=FOLDER pytest tests/golden/snapshot.py``.

Compare the folders of two commits with ``diff -r`` to see that a refactoring changes nothing. Times
and tokens are left out; everything else is the same in each run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command, get_commands
from django.test import Client
from django.utils import timezone

from codegen_app.workers.models.worker import Worker
from scheduler import samples
from scheduler.commands.main import COMMANDS, main
from tests.app.factories import prepared_graph
from tests.support import every_page
from tests.support.caches import KEPT
from tests.support.pages_world import make_world

FOLDER = Path(os.environ.get("SNAPSHOT", ""))
VARIES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]([\d:.]|%3A)+(Z|\+00:00|%2B00%3A00)?"
    r"|\d{1,2} \w{3}( \d{4})?,? \d+:\d\d(:\d\d| [ap]\.m\.)?"
    r"|\d+(\.\d+)? (ms|s|seconds?|minutes?|min|hours?|h|d|days?) ago|just now|now"
    r"|\b\w{64}\b(?=\"(}'|>))|kiln_hook_[\w-]+|(?<=badge.svg.key=)\w+|(?<=ticket=)[\w%-]+"
)
pytestmark = pytest.mark.skipif(not FOLDER.name, reason="SNAPSHOT=FOLDER says where to write")


def write(name: str, text: str) -> None:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(VARIES.sub("…", text))


def pages() -> Iterator[tuple[str, str]]:
    found, _ = every_page.available()
    yield from found.items()
    yield from every_page.ANONYMOUS.items()
    for name, address in every_page.ADMIN.items():
        yield name, address()


@pytest.mark.django_db(reset_sequences=True)
def test_pages(client: Client) -> None:
    world = make_world(KEPT.root, layers=3, candidates=3, compiled=2)
    every_page.furnish(world.graph)
    prepared_graph()
    client.force_login(User.objects.get(username="admin-of-pages"))
    for name, address in pages():
        Worker.objects.update(seen_at=timezone.now())
        html = client.get(address)
        write(f"pages/{name}.html", f"{html.status_code}\n{html.content.decode()}")
        path, mark, query = address.partition("?")
        twin = client.get(f"{path.rstrip('/') or '/overview'}.json{mark}{query}")
        if twin.headers.get("Content-Type") == "application/json":
            write(f"json/{name}.json", json.dumps(twin.json(), indent=1))
    write("openapi.json", json.dumps(client.get("/api/v1/openapi.json").json(), indent=1))


def write_help(name: str, command: Callable[[], object]) -> None:
    text = StringIO()
    with redirect_stdout(text), pytest.raises(SystemExit):
        command()
    write(f"commands/{name}.txt", text.getvalue())


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(name: str) -> None:
    write_help(name or "scheduler", partial(main, [*name.split(), "--help"]))


def test_help_of_management() -> None:
    for name, app in get_commands().items():
        if app == "codegen_app":
            write_help(f"manage-{name}", partial(call_command, name, "--help"))


@pytest.mark.parametrize("name", ["gpt2_2layer", "resnet_small"])
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_bundle(name: str, target: str, tmp_path: Path) -> None:
    text, bundle = StringIO(), tmp_path / "bundle"
    path = str(samples.path(name))
    with redirect_stdout(text):
        main(["lower", path])
        main(["compile", path, "--target", target, "--out", str(bundle)])
    lines = text.getvalue().replace(str(tmp_path), "").splitlines()
    write(f"bundles/{name}-{target}.txt", "\n".join(sorted(lines)))  # in the order of the builds
    for file in sorted(bundle.rglob("*")):
        if file.suffix in (".json", ".py", ".hip", ".s") and file.name != "build.json":
            write(f"bundles/{name}-{target}/{file.relative_to(bundle)}", file.read_text())
