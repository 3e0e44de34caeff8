"""Strings that somebody hostile, or unlucky, gives where a name or a text is asked for."""

from __future__ import annotations

# As names of things: each would lead elsewhere, or break, if it became a path or a header.
NAMES = (
    "/tmp/elsewhere",
    "//tmp//elsewhere",
    "../../elsewhere",
    "..",
    ".",
    "",
    " ",
    "~root",
    "a/../../b",
    "C:\\Windows\\elsewhere",
    "\\\\host\\share",
    "..\\..\\elsewhere",
    "CON",
    "nul.txt",
    "aux.",
    ".hidden",
    "-rf",
    "trailing. ",
    "nul\x00byte",
    "\x00",
    "line\r\nSet-Cookie: a=b",
    'quote"; filename="x',
    "semi;colon",
    "$(reboot)`reboot`",
    "%2e%2e%2f",
    "\u202egnp.exe",
    "\ud800 lone surrogate",
    "\udcff",
    "модель",
    "\N{PILE OF POO}" * 60,
    "x" * 5000,
    "x" * 255 + ".pt2",
)

# As values of parameters and fields.
TEXTS = (
    *NAMES,
    "-1",
    "0",
    "1e400",
    "NaN",
    "9" * 30,
    str(2**63),
    str(-(2**63) - 1),
    "٣",  # a digit, but not ours
    "²",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "{{ 7*7 }}",
    "[]",
    "true",
    "x" * 100_000,
)
