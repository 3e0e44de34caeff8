"""What a reader sees of tables and figures: cells by their headings, numbers as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import Locator

_NUMBER = re.compile(r"\d[\d\u202f]*(?:\.\d+)?")
_CELLS = """row => {
  const heads = [...row.closest("table").querySelectorAll("thead th")];
  const said = (part) => part.innerText.replace(/[^\\S\\u202f]+/g, " ").trim();
  return [...row.cells].map((cell, n) => [said(heads[n]), said(cell)]);
}"""
_OWN_CELLS = 'row => row.closest("table").querySelectorAll("thead th").length === row.cells.length'


def cells(row: Locator) -> dict[str, str]:
    """A table's row as it is read: each cell's text by its heading's."""
    assert row.evaluate(_OWN_CELLS), "a heading for every cell"
    found: list[list[str]] = row.evaluate(_CELLS)
    return dict(map(tuple, found))  # type: ignore[arg-type]


def under(row: Mapping[str, str], *beginnings: str) -> str:
    """The cell under the one heading that begins so, in any case: units and labels follow it."""
    wanted = tuple(each.lower() for each in beginnings)
    found = [text for head, text in row.items() if head.lower().startswith(wanted)]
    assert len(found) == 1, f"{beginnings} among {list(row)}"
    return found[0]


def facts(page: Any) -> dict[str, str]:
    """The facts of a page, each value by its name; of a name that stands twice the first."""
    pairs: list[list[str]] = page.locator("dl.facts > div").evaluate_all(
        "all => all.map(one => [one.querySelector('dt'), one.querySelector('dd')]"
        ".map(part => part.textContent.replace(/[^\\S\\u202f]+/g, ' ').trim()))"
    )
    return dict(reversed([(name, value) for name, value in pairs]))


def numbers(text: str) -> list[float]:
    """Every number of a text, in its order."""
    return [float(one.replace("\u202f", "")) for one in _NUMBER.findall(text)]


def shows(text: str, value: float) -> bool:
    """Whether the first number of a text is this value, rounded to the digits that are written."""
    found = _NUMBER.search(text)
    if found is None:
        return False
    written = found.group().replace("\u202f", "")
    digits = len(written.partition(".")[2])
    return abs(float(written) - value) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def shows_all(text: str, *values: float) -> bool:
    """The same of several numbers, and of no more than these."""
    found = _NUMBER.findall(text)
    return len(found) == len(values) and all(map(shows, found, values))
