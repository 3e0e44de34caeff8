"""Sources and listings as HTML lines: the lexers, and the renderer of the pages."""

from __future__ import annotations

from codegen_app.web.highlighting.amd import AmdListingLexer
from codegen_app.web.highlighting.hip import HipLexer
from codegen_app.web.highlighting.nvidia import PtxLexer, SassLexer
from codegen_app.web.highlighting.render import (
    highlight_lines,
    lexer_context,
    listing_lexer,
    source_lexer,
)

__all__ = [
    "AmdListingLexer",
    "HipLexer",
    "PtxLexer",
    "SassLexer",
    "highlight_lines",
    "lexer_context",
    "listing_lexer",
    "source_lexer",
]
