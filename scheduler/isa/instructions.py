"""Kinds of instructions, common to all makers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from scheduler.targets.terms import Terms


class Kind(StrEnum):
    """Classes of instructions: each has its own count and colour."""

    MATRIX = "matrix"
    VECTOR = "vector"
    SCALAR = "scalar"
    LDS = "lds"
    GLOBAL = "global"
    SCRATCH = "scratch"
    WAIT = "wait"
    BRANCH = "branch"
    OTHER = "other"  # in a listing for the host: not classified further


def kind_titles(words: Terms) -> Mapping[Kind, str]:
    """Return the table heading of each class, in a maker's terms."""
    own = {Kind.SCALAR: words.scalar, Kind.LDS: words.shared, Kind.SCRATCH: words.scratch}
    return {kind: own.get(kind, kind.value) for kind in Kind}
