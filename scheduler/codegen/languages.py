"""The languages of sources, by file name."""

from __future__ import annotations

from scheduler.codegen.cutedsl import source as cutedsl
from scheduler.codegen.rocm import source as hip

LANGUAGES = {hip.SOURCE_FILE: "HIP", cutedsl.SOURCE_FILE: "CuteDSL"}


def language_of(source_file: str) -> str:
    """Return a source's language; for one that an installed backend added, its file extension."""
    return LANGUAGES.get(source_file, source_file.rpartition(".")[2])
