"""What of a C++ source is code: its text without comments and literals.

Phases 1 to 3 of translation as a careful compiler does them: trigraphs, lines joined by a backslash
(also one with blanks behind it, which compilers accept), then comments and literals, raw ones too.
"""

from __future__ import annotations

import re

_TRIGRAPHS = dict(zip("=/'()!<>-", "#\\^[]|{}~", strict=True))
_TRIGRAPH = re.compile(r"\?\?([=/'()!<>-])")
_SPLICE = re.compile(r"\\[ \t\v\f]*(\r\n|\n|\r)")
_PART = re.compile(
    r"""
      (?P<comment> //[^\n\r]* | /\*.*?(?:\*/|\Z) )
    | (?P<raw> (?:u8|u|U|L)?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<literal>
        (?:\b(?:u8|u|U|L))?
        (?: "(?:\\.|[^"\\\n])*(?:"|$) | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*(?:'|$) )
      )
    | (?P<directive> ^[ \t]*\#[^\n\r]* )
    | (?P<blank> \s+ )
    | (?P<word> [\w$]+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def code(source: str) -> list[str]:
    """The words, marks and directives of a source, in order; a literal is one word."""
    text = _TRIGRAPH.sub(lambda found: _TRIGRAPHS[found[1]], source)
    text = _SPLICE.sub("", text)
    parts: list[str] = []
    for found in _PART.finditer(text):
        kind = found.lastgroup if found.lastgroup != "delimiter" else "raw"
        if kind in ("comment", "blank"):
            continue
        parts.append("a literal" if kind in ("raw", "literal") else found[0].strip())
    return parts
