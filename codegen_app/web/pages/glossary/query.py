"""The glossary from ``docs/glossary.md``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from codegen_app.platform.config.layout import LAYOUT


@dataclass(frozen=True)
class Term:
    """A term and its meaning."""

    term: str
    meaning: str


@dataclass(frozen=True)
class Subject:
    """Terms that belong together."""

    title: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Glossary:
    """The page of terms."""

    subjects: tuple[Subject, ...]


@cache
def glossary() -> Glossary:
    """Return the file's headings with the rows of their tables (no queries)."""
    text = (LAYOUT.site / "docs" / "glossary.md").read_text(encoding="utf-8")
    subjects = []
    for section in text.split("\n## ")[1:]:
        title, _, table = section.partition("\n")
        rows = [
            line.strip("| ").split(" | ", 1) for line in table.split("\n") if line.startswith("| ")
        ]
        terms = tuple(Term(term, meaning) for term, meaning in rows[1:])
        subjects.append(Subject(title, terms))
    return Glossary(tuple(subjects))
