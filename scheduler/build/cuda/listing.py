"""Listings as people read them: where they say that code comes from, and how wide they are.

NVIDIA's assembler knows a file and a line, not who called. The compiler writes the calls that a
line was inlined through as a comment, ``// mma.h:26:3 @[ source.hip:218:9 ]``. What is inlined from
a header belongs to the kernel's line that calls it, as in the listings for AMD's GPUs.
"""

from __future__ import annotations

import re

_LOC = re.compile(r"^(\t\.loc\t)(\d+) (\d+) (\d+)(\s*// .*)$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^ +(/\*[0-9a-f]{4,}\*/) +(@!?U?P\w+ )?", re.MULTILINE)
_REMARK = re.compile(r"^nvdisasm (?:warning|info) *:.*\n", re.MULTILINE)
_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"', re.MULTILINE)


def attribute_to_callers(ptx: str, source_file: str) -> str:
    """The PTX with each line of a header replaced by the line of the source that calls it."""
    numbers = {path.rpartition("/")[2]: number for number, path in _FILE.findall(ptx)}
    own = numbers.get(source_file)
    if own is None:
        return ptx
    call = re.compile(rf"@\[ {re.escape(source_file)}:(\d+):(\d+)")

    def moved(match: re.Match[str]) -> str:
        site = call.search(match[5])
        if match[2] == own or site is None:
            return match[0]
        return f"{match[1]}{own} {site[1]} {site[2]}{match[5]}"

    return _LOC.sub(moved, ptx)


def compact_listing(sass: str) -> str:
    """The disassembler's listing without most of the space before its instructions, which stand
    under each other still, and without what it says of itself."""
    sass = _REMARK.sub("", sass)
    return _INSTRUCTION.sub(lambda match: f"  {match[1]} {match[2] or '':>6}", sass)
