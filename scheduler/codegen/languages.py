"""What the languages of sources are called, by the name of a source's file."""

from __future__ import annotations

from scheduler.codegen.cutedsl import source as cutedsl
from scheduler.codegen.rocm import source as hip

LANGUAGES = {hip.SOURCE_FILE: "HIP", cutedsl.SOURCE_FILE: "CuteDSL"}


def language_of(source_file: str) -> str:
    """A source's language; of one that an installed backend brought its file's ending."""
    return LANGUAGES.get(source_file, source_file.rpartition(".")[2])
