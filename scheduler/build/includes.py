"""Which of our headers a source reads, by its text: its includes, and theirs in turn.

Preprocessor conditions are ignored, so a header counts even if a target leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path

from scheduler.build.cache import digest
from scheduler.build.sandbox_paths import HEADER_ROOT

_SPLICE = re.compile(r"\\[ \t]*\n")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
# Other ways in which a source may read a file: beside itself, by names that macros make, as a
# module, and through the assembler.
_INDIRECT_READ = re.compile(
    r"%:|#[ \t]*(?:include[ \t]*[^<\s]|import|embed|/)"
    r"|\b(?:__has_\w+|import|_Pragma|asm|__asm(?:__)?)\b"
)


def included_digest(source: str, folders: Sequence[str]) -> str:
    """Return the digest of the headers that ``included_headers`` finds, by name and content."""
    return _digest(included_headers(source, folders))


def included_headers(source: str, folders: Sequence[str]) -> Mapping[Path, str]:
    """Return the headers that a source reads with these folders of ours as its ``-I``, with their
    content; all of ours if its text does not tell which."""
    text = _SPLICE.sub("", source)
    if _INDIRECT_READ.search(text):
        return _all_headers()
    headers: dict[Path, str] = {}
    pending = [(text, HEADER_ROOT)]
    while pending:
        text, current_folder = pending.pop()
        for angled, quoted in _INCLUDE.findall(text):
            for folder_of_name in (current_folder, *(HEADER_ROOT / folder for folder in folders)):
                file = Path(normpath(folder_of_name / (angled or quoted)))
                if file not in headers and HEADER_ROOT in file.parents and file.is_file():
                    headers[file] = file.read_text()
                    pending.append((headers[file], file.parent))
    return headers


def headers_digest() -> str:
    """Return the digest of our headers' content, independent of their dates and location."""
    return _digest(_all_headers())


def _all_headers() -> Mapping[Path, str]:
    return {file: file.read_text() for file in HEADER_ROOT.rglob("*") if file.is_file()}


def _digest(contents: Mapping[Path, str]) -> str:
    parts: list[str] = []
    for file in sorted(contents):
        parts += [file.relative_to(HEADER_ROOT).as_posix(), contents[file]]
    return digest(*parts)
