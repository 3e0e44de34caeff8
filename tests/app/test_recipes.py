"""The recipes of ARCHITECTURE.md that add to the dashboard: a page and a column that are in no file
of ours. ``tests/unit/test_recipes.py`` has those of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from codegen_app.kernels.pages.kernels import query, view
from codegen_app.web.tables import Column, Kind
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
TEMPLATES = Path(__file__).parents[1] / "support" / "tiny_page" / "templates"


def test_add_a_page_with_its_json_view(
    reader: Client, client: Client, world: World, settings: Any
) -> None:
    settings.ROOT_URLCONF = "tests.support.tiny_page.urls"
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], TEMPLATES]}]
    assert reader.get("/tiny.json").json() == {"graphs": 1}
    page = reader.get("/tiny")
    assert "<title>Graph count" in page.content.decode()
    assert "<p>1 graphs</p>" in page.content.decode()
    assert 'href="/tiny.json"' in page.content.decode()
    assert reader.post("/tiny").status_code == 405, "without a rule a page is only read"
    client.logout()
    assert client.get("/tiny").status_code == 302, "readers sign in"


def test_add_a_column(reader: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of a kernel's name, as an optional column."""
    length = Column[query.KernelRow](
        "length", "Length", lambda row: len(row.name), Kind.WHOLE, "characters", shown=False
    )
    columns = (*query.COLUMNS, length)
    for module in (query, view):
        monkeypatch.setattr(module, "COLUMNS", columns)
    heading = 'Length <span class="unit">characters</span>'
    assert heading not in reader.get("/kernels").content.decode()
    found = reader.get("/kernels?column=name&column=length&sort=-length&filter=length>1")
    assert heading in found.content.decode()
    tsv = reader.get("/kernels?as=tsv&column=name&column=length&sort=name").content.decode()
    names = sorted(kernel.name for kernel in world.kernels)
    lines = [f"{name}\t{len(name)}" for name in names]
    assert tsv.splitlines() == ["Kernel\tLength [characters]", *lines]
