"""Text can be read in both themes: WCAG 2.2, contrast of at least 4.5 to 1 (AA). Colours that mean
something are told apart by colour-blind readers too, and blue means a link alone."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from codegen_app.web.templatetags.nodes import GLYPHS
from scheduler.ir.operations.base import GroupKind
from tests.support.colours import contrast, difference, hue_and_chroma

CSS = Path(__file__).resolve().parents[3] / "static" / "css"
_TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = {
    name: (light, dark)
    for name, light, dark in _TOKEN.findall((CSS / "web" / "tokens.css").read_text())
}

STATES = ("progress", "chosen", "modelled", "ok", "warn", "bad", "run")
TEXT = ("text", "text-2", "link", *STATES)
KINDS = tuple(name for name in TOKENS if name.startswith("kind-"))
VISION = ("normal", "protanopia", "deuteranopia", "tritanopia")
CODE = tuple(name for name in TOKENS if name.startswith("code-"))
SERIES = tuple(name for name in TOKENS if name.startswith("series-"))
TINTS = tuple(name for name in TOKENS if name.startswith("tint-"))
PAIRS = [
    *((text, ground) for text in TEXT for ground in ("bg", "surface")),
    *((text, "select-bg") for text in TEXT),
    *((status, f"{status}-bg") for status in ("ok", "warn", "bad")),
    *(("text", ground) for ground in ("ok-bg", "warn-bg", "bad-bg", "surface-2", "mark")),
    ("on-action", "action"),
    *(("ink-light", f"kind-{kind}") for kind in ("gemm", "convolution", "attention", "loop")),
    *(
        ("ink-dark", f"kind-{kind}")
        for kind in ("reduction", "pointwise", "scan", "extern", "none")
    ),
    *(("text", f"share-{step}") for step in range(3)),
    ("on-share-3", "share-3"),
    ("on-share-4", "share-4"),
    *(
        (code, ground)
        for code in (*CODE, *SERIES)
        for ground in ("bg", "select-bg", "mark", *TINTS)
    ),
]


def test_text_can_be_read_in_both_themes() -> None:
    contrasts = {
        f"{text} on {ground}, {theme}": contrast(one, other)
        for text, ground in PAIRS
        for theme, one, other in zip(("light", "dark"), TOKENS[text], TOKENS[ground], strict=True)
    }
    assert {pair: found for pair, found in contrasts.items() if found < 4.5} == {}


def test_lines_of_controls_can_be_seen() -> None:
    for one, other in zip(TOKENS["line-strong"], TOKENS["bg"], strict=True):
        assert contrast(one, other) >= 3  # WCAG 1.4.11


def test_colours_stand_in_the_tokens_alone() -> None:
    """So that both themes have them: no other sheet names a colour (a shadow's black aside)."""
    for sheet in CSS.rglob("*.css"):
        if sheet.name != "tokens.css":
            assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text()), sheet.name


def test_every_token_that_is_used_is_there() -> None:
    """A name that nobody defines would be no colour at all, silently."""
    text = "".join(sheet.read_text() for sheet in CSS.rglob("*.css"))
    defined = set(re.findall(r"(--[\w-]+):", text))
    scripts = "".join(path.read_text() for path in (CSS.parent / "js").rglob("*.js"))
    used = set(re.findall(r"var\((--[\w-]+)\)", text)) | set(re.findall(r'"(--[\w-]+)"', scripts))
    assert used - defined == set()


def test_sizes_of_type_stand_in_the_tokens_alone() -> None:
    """So that there is one scale: a level is named, never measured anew."""
    for sheet in CSS.rglob("*.css"):
        if sheet.name != "tokens.css":
            sizes = re.findall(
                r"font(?:-size)?:\s*[^;]*?\b[\d.]+(?:px|em|rem|%)", sheet.read_text()
            )
            assert not sizes, f"{sheet.name}: {sizes}"


def test_levels_of_type_are_seen_to_be_levels() -> None:
    text = (CSS / "web" / "tokens.css").read_text()
    sizes = [float(size) for size in re.findall(r"--type-(?!code)[a-z]+: ([\d.]+)px", text)]
    assert sizes == sorted(sizes, reverse=True)
    assert all(large / small >= 1.14 for large, small in pairwise(sizes))


def test_blue_means_a_link_alone() -> None:
    blue = {
        name
        for name, colours in TOKENS.items()
        for hue, chroma in map(hue_and_chroma, colours)
        if chroma > 0.06 and 225 < hue < 275
    }
    assert blue == {"link"}


@pytest.mark.parametrize("vision", VISION)
def test_kinds_and_series_are_told_apart_whoever_looks(vision: str) -> None:
    """Of kinds also in grey, by their glyphs."""
    series = [name for name in SERIES if name != "series-7"]  # which is everything else
    for names, least in ((KINDS, 5.0), (series, 3.5 if vision != "tritanopia" else 2.0)):
        for one, other in combinations(names, 2):
            for theme in (0, 1):
                apart = difference(TOKENS[one][theme], TOKENS[other][theme], vision)
                assert apart >= least, f"{one} and {other}, {vision}: {apart:.1f}"


def test_each_kind_has_a_glyph_of_its_own_and_a_colour() -> None:
    assert set(GroupKind) < set(GLYPHS)
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    text = (CSS / "web" / "components.css").read_text()
    for kind in GLYPHS:
        assert re.search(rf"\.kind-{kind}[^{{]*\{{ --swatch: var\(--kind-", text), kind


def test_shares_grow_in_one_direction() -> None:
    """So that a step is seen to be more than the last in grey too."""
    for theme, ground in enumerate(TOKENS["bg"]):
        steps = [contrast(TOKENS[f"share-{step}"][theme], ground) for step in range(5)]
        assert steps == sorted(steps)
        assert all(more / less >= 1.2 for less, more in pairwise(steps))
