"""Templates that a person can read and compare line by line."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

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
