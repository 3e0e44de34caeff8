"""What the security documents say is held by tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/security.md", "docs/threat-model.md", "SECURITY.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
#: Chapters of OWASP ASVS 5.0.
CHAPTERS = range(1, 18)
NOTHING = "\N{EN DASH}"  # the point is about what does not exist here


@cache
def source(file: str) -> str:
    path = ROOT / file
    return path.read_text() if path.is_file() else ""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_is_named_exists(document: str) -> None:
    named = NAMED.findall(source(document))
    assert named or document != "docs/security.md"
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not source(file) or (name and not re.search(rf"^def {name}\(", source(file), re.M))
    ]
    assert missing == []


def test_every_chapter_is_gone_through() -> None:
    headings = " ".join(re.findall(r"^## (.*)$", source("docs/security.md"), re.M))
    assert [n for n in CHAPTERS if not re.search(rf"\bV{n}\b", headings)] == []


def test_every_point_says_how_it_stands() -> None:
    rows = re.findall(r"^\| (\d+\.\d+[^|]*)\|([^|]*)\|([^|]*)\|$", source("docs/security.md"), re.M)
    assert len(rows) > 100
    for point, state, why in rows:
        assert state.strip() in {"yes", "part", "no", NOTHING}, point
        assert why.strip() or state.strip() == NOTHING, point


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_to_a_file(document: str) -> None:
    folder = (ROOT / document).parent
    for link in re.findall(r"\]\(([^)#]+)\)", source(document)):
        assert (folder / link).exists(), link
