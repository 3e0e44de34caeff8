"""Templates that a person can read and compare line by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.test import RequestFactory

WIDEST = 120
MOST_LINES = 150


def test_every_template_fits_a_screen() -> None:
    templates = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))
    assert len(templates) > 20
    lines = {path: path.read_text().split("\n") for path in templates}
    assert [
        f"{path.name}:{number}"
        for path, text in lines.items()
        for number, line in enumerate(text, 1)
        if len(line) > WIDEST
    ] == []
    assert [path.name for path, text in lines.items() if len(text) > MOST_LINES] == []


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        (
            {"start": 0, "end": 20, "previous": None, "total": 1200},
            ["1\N{EN DASH}20 of 1\u202f200", "next"],
        ),
        (
            {"start": 20, "end": 25, "previous": 0, "total": 25},
            ["21\N{EN DASH}25 of 25", "previous"],
        ),
        (
            {"start": 100, "end": 200, "previous": 0, "more": True},
            ["101\N{EN DASH}200", "previous", "next"],
        ),
        (
            {"start": 100, "end": 103, "previous": 0, "more": False},
            ["101\N{EN DASH}103", "previous"],
        ),
    ],
)
def test_the_foot_of_a_table_leads_where_there_is_more(
    page: dict[str, object], texts: list[str], rf: RequestFactory
) -> None:
    foot = render_to_string("web/pager.html", {"page": page}, rf.get("/kernels?q=a"))
    shown = re.sub(r"<[^>]*>|[\[\]]", "", foot).split("\n")
    assert [line.strip() for line in shown if line.strip()] == texts
    beside = {"previous": page["previous"], "next": page["end"]}
    leads = [f'href="/kernels?q=a&amp;start={beside[each]}"' for each in texts[1:]]
    assert re.findall(r'href="[^"]*"', foot) == leads
