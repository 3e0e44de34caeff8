"""A lexer for the listings that LLVM's AMDGPU backend writes with ``-S``.

Pygments' own lexer for AMD assembly does not know modifiers, dual-issue instructions, register
ranges or metadata, and marks most lines of a real listing as errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.lexer import bygroups as _bygroups
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

bygroups: Callable[..., Any] = _bygroups  # Pygments has no types for it

_SPECIAL = (
    r"vcc(?:_lo|_hi)?|exec(?:_lo|_hi)?|scc|m0|null|off|flat_scratch(?:_lo|_hi)?|xnack_mask(?:_lo|_hi)?"
    r"|src_\w+|ttmp(?:\d+|\[\d+:\d+\])|vccz|execz|lds_direct"
)

_OPERANDS: list[Any] = [
    (r"[ \t]+", Whitespace),
    (r"(;|//).*", Comment.Single),
    (r'"(?:\\.|[^"\\\n])*"', String),
    (r"::", Operator),
    (r"-?0x[0-9a-fA-F]+", Number.Hex),
    (r"-?\d+\.\d*(?:[eE][+-]?\d+)?", Number.Float),
    (r"\b[vsa](?:\d+\b|\[\d+(?::\d+)?\])", Name.Variable),
    (rf"\b(?:{_SPECIAL})\b(?:\[\d+:\d+\])?", Name.Variable),
    (r"(?:\.L|BB)[\w$.]*", Name.Label),
    (r"(?<=:: )v_\w*", Name.Function.Vector),
    (r"[@%][\w.]+", Keyword.Type),
    (r"[A-Za-z_.$][\w.$@]*(?=[:(])", Name.Attribute),
    (r"[A-Za-z_.$][\w.$@]*", Name.Constant),
    (r"-?\d+", Number.Integer),
    (r"[\[\](),:|&=+\-*/<>!~^#]", Punctuation),
]


class AmdListingLexer(RegexLexer):
    """LLVM's AMDGPU listings: instructions by class, registers, labels, directives, metadata."""

    name = "AMDGPU listing"
    aliases = ["amdgpu-listing"]
    openings = (".amdgpu_metadata",)  # lines after such a line need another lexer state
    filenames = ["*.s"]

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\n", Whitespace),
            (r"[ \t]+", Whitespace),
            (r"(;|//).*", Comment.Single),
            (r"(\.amdgpu_metadata)", Name.Decorator, "metadata"),
            (
                r"([A-Za-z_.$][\w.$]*|\"[^\"\n]*\")(:)",
                bygroups(Name.Label, Punctuation),
            ),
            (r"\.[A-Za-z_][\w.]*", Name.Decorator, "operands"),
            (r"v_(?:dual_)?(?:s?mfma|s?wmma)\w*", Name.Function.Matrix, "operands"),
            (r"v_\w+", Name.Function.Vector, "operands"),
            (r"ds_\w+", Name.Function.Lds, "operands"),
            (
                r"(?:global|flat|scratch|buffer|image|tbuffer|s_buffer)_\w+",
                Name.Function.Global,
                "operands",
            ),
            (r"s_(?:waitcnt|wait_|barrier|nop|sleep|delay_alu)\w*", Name.Function.Wait, "operands"),
            (
                r"s_(?:cbranch|branch|setpc|swappc|call|endpgm)\w*",
                Name.Function.Branch,
                "operands",
            ),
            (r"s_\w+", Name.Function.Scalar, "operands"),
            (r"[A-Za-z_][\w.]*", Name.Function, "operands"),
        ],
        "operands": [(r"\n", Whitespace, "#pop"), *_OPERANDS],
        "metadata": [
            (r"\.end_amdgpu_metadata", Name.Decorator, "#pop"),
            (r"\n", Whitespace),
            (r"[ \t]+", Whitespace),
            (r"---|\.\.\.|-(?=\s)", Punctuation),
            (
                r"([\w.]+)(:)([ \t]*)([^\n]*)",
                bygroups(Name.Attribute, Punctuation, Whitespace, String),
            ),
            (r"[^\n]+", Text),
        ],
    }
