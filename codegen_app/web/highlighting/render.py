"""Render text as one HTML fragment per line, with the classes of static/css/kernels/code.css."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES, Name, Token, Whitespace, _TokenType
from pygments.util import ClassNotFound

from codegen_app.web.highlighting.amd import AmdListingLexer
from codegen_app.web.highlighting.hip import HipLexer
from codegen_app.web.highlighting.nvidia import PtxLexer, SassLexer

_INSTRUCTION_CLASSES: dict[_TokenType, str] = {
    Name.Function.Matrix: "i-matrix",
    Name.Function.Vector: "i-vector",
    Name.Function.Scalar: "i-scalar",
    Name.Function.Lds: "i-lds",
    Name.Function.Global: "i-global",
    Name.Function.Wait: "i-wait",
    Name.Function.Branch: "i-branch",
}
_PLAIN = frozenset({Token, Token.Text, Whitespace, Token.Punctuation, Token.Operator, Name})
_COMMENTS = frozenset({"c", "c1", "ch", "cm", "cs"})
_WORD = re.compile(r"[A-Za-z_]\w*")


_OWN_LEXERS: dict[str, type[Lexer]] = {
    lexer.aliases[0]: lexer for lexer in (AmdListingLexer, HipLexer, SassLexer, PtxLexer)
}


def source_lexer(file: str) -> Lexer:
    """Return the lexer for a kernel's source by its file name; plain text for an unsupported
    language."""
    if any(fnmatch(file, pattern) for pattern in HipLexer.filenames):
        return HipLexer()  # type: ignore[no-untyped-call]
    try:
        lexer: Lexer = get_lexer_for_filename(file)
    except ClassNotFound:
        return TextLexer()
    return lexer


def listing_lexer(dialect: str) -> Lexer:
    """Return the lexer for a listing in this dialect, as its reader names it."""
    return _OWN_LEXERS[dialect]() if dialect in _OWN_LEXERS else get_lexer_by_name(dialect)


def lexer_context(lexer: Lexer, before: Sequence[str]) -> list[str]:
    """Return the openings among the lines before a part of a text, which the lexer must have seen
    to parse it."""
    openings: tuple[str, ...] = getattr(lexer, "openings", ())
    return [opening for opening in openings if any(opening in line for line in before)]


def highlight_lines(
    text: str, lexer: Lexer, links: Mapping[str, str] | None = None
) -> list[SafeString]:
    """One safe HTML fragment for each line of ``text`` (``text.split("\\n")``, no fewer, no more).

    ``links`` maps words that stand in comments (the metadata comment's node names) to addresses.
    Lexers may not change the text: lines must keep their numbers.
    """
    lexer.stripnl = lexer.ensurenl = lexer.stripall = False
    lines: list[list[str]] = [[]]
    for token, value in lexer.get_tokens(text):
        css = _css_class(token)
        in_comment = links and css in _COMMENTS
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                body = _link_words(part, links or {}) if in_comment else escape(part)
                lines[-1].append(f'<span class="{css}">{body}</span>' if css else body)
    return [mark_safe("".join(line)) for line in lines]  # noqa: S308 (every part is escaped)


def _css_class(token: _TokenType) -> str:
    if token in _INSTRUCTION_CLASSES:
        return _INSTRUCTION_CLASSES[token]
    if token in _PLAIN:
        return ""
    while token not in STANDARD_TYPES and token.parent is not None:
        token = token.parent
    return STANDARD_TYPES.get(token, "")


def _link_words(comment: str, links: Mapping[str, str]) -> str:
    """Render a comment with its known words as links; everything else is escaped."""
    out: list[str] = []
    end = 0
    for match in _WORD.finditer(comment):
        address = links.get(match.group())
        if address is None:
            continue
        out.append(escape(comment[end : match.start()]))
        out.append(f'<a tabindex="-1" href="{escape(address)}">{escape(match.group())}</a>')
        end = match.end()
    out.append(escape(comment[end:]))
    return "".join(out)
