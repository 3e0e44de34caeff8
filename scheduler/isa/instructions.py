"""Kinds of instructions, whoever's they are."""

from __future__ import annotations

from enum import StrEnum


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
