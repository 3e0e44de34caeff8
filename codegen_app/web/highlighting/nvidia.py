"""Lexers for the listings of NVIDIA's GPUs: SASS as nvdisasm prints it, PTX as LLVM writes it.

Pygments has neither. The reader of these listings classifies instructions, and the class determines
the colour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer, RegexLexer
from pygments.lexer import bygroups as _bygroups
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from scheduler.isa.cuda.instructions import kind_of
from scheduler.isa.instructions import Kind

bygroups: Callable[..., Any] = _bygroups  # Pygments has no types for it

_TOKENS = {
    Kind.MATRIX: Name.Function.Matrix,
    Kind.VECTOR: Name.Function.Vector,
    Kind.SCALAR: Name.Function.Scalar,
    Kind.LDS: Name.Function.Lds,
    Kind.GLOBAL: Name.Function.Global,
    Kind.SCRATCH: Name.Function.Global,
    Kind.WAIT: Name.Function.Wait,
    Kind.BRANCH: Name.Function.Branch,
}


def _instruction(
    lexer: Lexer,  # noqa: ARG001 - as Pygments calls it
    match: re.Match[str],
    context: Any = None,  # noqa: ARG001
) -> Iterator[tuple[int, _TokenType, str]]:
    yield match.start(), _TOKENS.get(kind_of(match[0]), Name.Function), match[0]


_TEXT_RULES: list[Any] = [
    (r"[ \t]+", Whitespace),
    (r"//.*", Comment.Single),
    (r"/\*.*?\*/", Comment.Multiline),
    (r'@?"(?:\\.|[^"\\\n])*"', String),
]
_NUMBER_RULES: list[Any] = [
    (r"-?0[xX][0-9a-fA-F]+", Number.Hex),
    (r"0[fFdD][0-9a-fA-F]{8,16}\b", Number.Float),
    (r"[+-]?\d+\.\d*(?:[eE][+-]?\d+)?", Number.Float),
    (r"[+-]?\d+[eE][+-]?\d+", Number.Float),
    (r"[+-](?:INF|QNAN|SNAN)\b", Number.Float),
    (r"-?\d+", Number.Integer),
]
_PUNCTUATION = r"[\[\](){},;:|&=+\-*/<>!~^#@?%`]"


class SassLexer(RegexLexer):
    """SASS: instructions by class, registers, predicates, labels, directives."""

    name = "SASS listing"
    aliases = ["sass-listing"]
    filenames: ClassVar[list[str]] = []

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\n", Whitespace),
            *_TEXT_RULES,
            (r"([A-Za-z_.$][\w.$]*)(:)", bygroups(Name.Label, Punctuation)),
            (r"\.[A-Za-z_][\w.]*", Name.Decorator, "operands"),
            (r"(@)(!?)(U?P[T\d]+)", bygroups(Operator, Operator, Name.Variable)),
            (r"[A-Z][\w.]*", _instruction, "operands"),
            (rf"[\w.$]+|{_PUNCTUATION}", Name.Constant, "operands"),
        ],
        "operands": [
            (r"\n", Whitespace, "#pop"),
            *_TEXT_RULES,
            (r"(`\()([^)\n]*)(\))", bygroups(Punctuation, Name.Label, Punctuation)),
            (r"\bU?(?:R(?:\d+|Z)|P(?:\d|T|R))\b", Name.Variable),
            (r"\b(?:SR_[\w.]+|SRZ|g?sb\d+|B\d+)\b", Name.Variable),
            (r"@[\w.]+", Keyword.Type),
            *_NUMBER_RULES,
            (r"\.[A-Za-z_][\w.$]*", Name.Attribute),
            (r"[A-Za-z_$][\w.$]*", Name.Constant),
            (_PUNCTUATION, Punctuation),
            (r"[.$]", Punctuation),
        ],
    }


class PtxLexer(RegexLexer):
    """PTX: instructions by class, registers, labels, directives."""

    name = "PTX listing"
    aliases = ["ptx-listing"]
    filenames: ClassVar[list[str]] = ["*.ptx"]

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\n", Whitespace),
            *_TEXT_RULES,
            (r"([A-Za-z_$%][\w$]*)(:)(?!:)", bygroups(Name.Label, Punctuation)),
            (r"\.[A-Za-z_]\w*", Name.Decorator, "operands"),
            (r"(@)(!?)(%\w+)", bygroups(Operator, Operator, Name.Variable)),
            (r"[a-z][\w.:]*", _instruction, "operands"),
            (r"[{}();]", Punctuation),
            (rf"[\w.$]+|{_PUNCTUATION}", Name.Constant, "operands"),
        ],
        "operands": [
            (r"\n", Whitespace, "#pop"),
            (r";", Punctuation, "#pop"),
            *_TEXT_RULES,
            (r"\$L\w+", Name.Label),
            (r"%[\w.]+", Name.Variable),
            *_NUMBER_RULES,
            (r"\.[A-Za-z_]\w*", Name.Decorator),
            (r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)*", Name.Constant),
            (_PUNCTUATION, Punctuation),
            (r"[.$]", Punctuation),
        ],
    }
