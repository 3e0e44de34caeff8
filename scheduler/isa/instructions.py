"""Kinds of instructions, whoever's they are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from scheduler.targets.terms import Terms


class Kind(StrEnum):
    """Classes of instructions: each has a count and a colour of its own."""

    MATRIX = "matrix"
    VECTOR = "vector"
    SCALAR = "scalar"
    LDS = "lds"
    GLOBAL = "global"
    SCRATCH = "scratch"
    WAIT = "wait"
    BRANCH = "branch"
    OTHER = "other"  # of a listing for the host: not classified further


def kind_titles(words: Terms) -> Mapping[Kind, str]:
    """What tables call each class, in a maker's words."""
    own = {Kind.SCALAR: words.scalar, Kind.LDS: words.shared, Kind.SCRATCH: words.scratch}
    return {kind: own.get(kind, kind.value) for kind in Kind}
