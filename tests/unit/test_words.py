"""What users read says it in standard terms (docs/glossary.md, CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Phrases of texts that have a standard term in their place.
BANNED = re.compile(
    r"cannot be said|costs most|held back|twice quickly|counts from"
    r"|\b(nobody|somebody|whoever|whatever|elsewhere|anew|unasked|thereby|besides)\b"
    r"|beside the (default|trunk|history|others)|nothing was gained|won a run"
    r"|furthest of|own instructions take|keep busy|will wait\b"
    r"|bound by products|operations of products|source's digest|means by|place in the list"
    r"|asked for again|not made by|kernel (that )?serves|each chosen|say what became"
    r"|\b(waves|blocks|lanes|registers) an? (SIMD|SM|CU)\b|\bis none\b|AGPRs? of them",
    re.IGNORECASE,
)
#: Values that are stored or sent; pages show another text.
STORED = {
    "cannot be said",
    "nobody",
    "elsewhere",
    "begin anew",
    "a pipe that other waves keep busy",
    "compiled elsewhere: imported with its times",
    "A person asked for it: it is built whoever else waits for it",
}
_TAGS = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}|<[^>]*>", re.DOTALL)
_SHOWN = re.compile(r'(?:title|aria-label|placeholder|alt)="([^"]*)"')


def template_texts(path: Path) -> Iterator[str]:
    text = path.read_text()
    yield from _SHOWN.findall(text)
    yield re.sub(r"\s+", " ", _TAGS.sub(" ", text))


def literals(path: Path) -> Iterator[str]:
    """The string literals of a module that are not docstrings."""
    tree = ast.parse(path.read_text(), str(path))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text


def found(texts: Iterator[str]) -> list[str]:
    return [
        text[max(0, match.start() - 40) : match.end() + 40]
        for text in texts
        if text not in STORED
        for match in BANNED.finditer(text)
    ]


def test_pages_say_it_in_standard_terms() -> None:
    pages = {path: found(template_texts(path)) for path in (ROOT / "templates").rglob("*.html")}
    assert {path.name: texts for path, texts in pages.items() if texts} == {}


def test_messages_say_it_in_standard_terms() -> None:
    files = [
        path
        for folder in ("scheduler", "codegen_app")
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts
    ]
    messages = {path.relative_to(ROOT).as_posix(): found(literals(path)) for path in files}
    assert {name: texts for name, texts in messages.items() if texts} == {}
