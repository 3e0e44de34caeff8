"""The tables and facts of a page by their labels, as a reader finds a figure there."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Found:
    """``tables``: by id, each row as its cells by their heads' texts, with its own id under "".
    ``facts``: the texts beside each label of lists of facts."""

    tables: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    facts: dict[str, list[str]] = field(default_factory=dict)

    def row(self, table: str, *words: str) -> dict[str, str]:
        """The only row of a table that has all of these words in its cells."""
        rows = self.tables[table]
        found = [row for row in rows if all(any(w in v for v in row.values()) for w in words)]
        assert len(found) == 1, f"{len(found)} rows of {table} have {words}: {rows}"
        return found[0]

    def fact(self, label: str) -> str:
        """The only text beside a label."""
        (text,) = self.facts[label]
        return text


def read(html: str) -> Found:
    """What a page has."""
    reader = _Reader()
    reader.feed(html)
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Found()
        self._table = ""
        self._heads: list[str] = []
        self._cells: list[str] = []
        self._row = ""
        self._text: list[str] | None = None
        self._in_head = False
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "table":
            self._table, self._heads = given.get("id") or "", []
            self.found.tables.setdefault(self._table, [])
        elif tag in ("thead", "tbody"):
            self._in_head = tag == "thead"
        elif tag == "tr":
            self._cells, self._row = [], given.get("id") or ""
        elif tag in ("th", "td", "dt", "dd"):
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td", "dt", "dd") and self._text is not None:
            text, self._text = " ".join("".join(self._text).split()), None
            if tag == "dt":
                self._label = text
            elif tag == "dd":
                self.found.facts.setdefault(self._label, []).append(text)
            else:
                self._cells.append(text)
        elif tag == "tr" and self._in_head:
            self._heads = self._cells
        elif tag == "tr" and self._cells:
            row = dict(zip(self._heads, self._cells, strict=False))
            self.found.tables[self._table].append({"": self._row, **row})
