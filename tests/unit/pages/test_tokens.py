"""Text can be read in both themes: WCAG 2.2, contrast of at least 4.5 to 1 (AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[3] / "static" / "css"
_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = {
    name: (light, dark) for name, light, dark in _TOKEN.findall((CSS / "tokens.css").read_text())
}

TEXT = ("text", "text-2", "accent", "ok", "warn", "bad", "run")
CODE = tuple(name for name in TOKENS if name.startswith("code-"))
SERIES = tuple(name for name in TOKENS if name.startswith("series-"))
TINTS = tuple(name for name in TOKENS if name.startswith("tint-"))
PAIRS = [
    *((text, ground) for text in TEXT for ground in ("bg", "surface")),
    *((text, "accent-bg") for text in ("text", "text-2", "accent")),
    *((status, f"{status}-bg") for status in ("ok", "warn", "bad")),
    *(("text", ground) for ground in ("ok-bg", "warn-bg", "bad-bg", "surface-2", "mark")),
    ("on-accent", "accent"),
    *(
        (code, ground)
        for code in (*CODE, *SERIES)
        for ground in ("bg", "accent-bg", "mark", *TINTS)
    ),
]


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_in_both_themes(text: str, ground: str) -> None:
    for theme, one, other in zip(("light", "dark"), TOKENS[text], TOKENS[ground], strict=True):
        assert contrast(one, other) >= 4.5, (
            f"{text} on {ground}, {theme}: {contrast(one, other):.2f}"
        )


def test_lines_of_controls_can_be_seen() -> None:
    for one, other in zip(TOKENS["line-strong"], TOKENS["bg"], strict=True):
        assert contrast(one, other) >= 3  # WCAG 1.4.11


def test_colours_stand_in_the_tokens_alone() -> None:
    """So that both themes have them: no other sheet names a colour (a shadow's black aside)."""
    for sheet in CSS.glob("*.css"):
        if sheet.name != "tokens.css":
            assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text()), sheet.name
