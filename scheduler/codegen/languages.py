"""The languages of sources, by a source's file name in a bundle and in the compiler's folder."""

from __future__ import annotations

HIP_SOURCE = "source.hip"
CUTEDSL_SOURCE = "source.py"
LANGUAGES = {HIP_SOURCE: "HIP", CUTEDSL_SOURCE: "CuteDSL"}


def language_of(source_file: str) -> str:
    """Return a source's language; for one that an installed backend added, its file extension."""
    return LANGUAGES.get(source_file, source_file.rpartition(".")[2])
