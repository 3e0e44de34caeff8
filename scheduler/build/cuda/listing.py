"""Make listings readable: attribute code to source lines, and narrow them.

NVIDIA's assembler knows a file and a line, not the caller. The compiler writes the calls that a
line was inlined through as a comment, ``// mma.h:26:3 @[ source.hip:218:9 ]``. Code inlined from a
header is attributed to the kernel's line that calls it, as in the listings for AMD's GPUs.
"""

from __future__ import annotations

import re

_LOC = re.compile(r"^(\t\.loc\t)(\d+) (\d+) (\d+)(\s*// .*)$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^ +(/\*[0-9a-f]{4,}\*/) +(@!?U?P\w+ )?", re.MULTILINE)
_REMARK = re.compile(r"^nvdisasm (?:warning|info) *:.*\n", re.MULTILINE)
_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"', re.MULTILINE)


def attribute_to_callers(ptx: str, source_file: str) -> str:
    """Return the PTX with each header line replaced by the source line that calls it."""
    numbers = {path.rpartition("/")[2]: number for number, path in _FILE.findall(ptx)}
    source_number = numbers.get(source_file)
    if source_number is None:
        return ptx
    call = re.compile(rf"@\[ {re.escape(source_file)}:(\d+):(\d+)")

    def with_call_site(match: re.Match[str]) -> str:
        call_site = call.search(match[5])
        if match[2] == source_number or call_site is None:
            return match[0]
        return f"{match[1]}{source_number} {call_site[1]} {call_site[2]}{match[5]}"

    return _LOC.sub(with_call_site, ptx)


def compact_listing(sass: str) -> str:
    """Return the disassembler's listing without its header comments and with less indentation,
    still aligned."""
    sass = _REMARK.sub("", sass)
    return _INSTRUCTION.sub(lambda match: f"  {match[1]} {match[2] or '':>6}", sass)
