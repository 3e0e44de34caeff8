"""The ways in which a device function may go through rows, of which sizes say which serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class LoopVersion:
    """A thread takes ``vector`` neighbouring steps at a time. What it reads more than once stays in
    registers if it does so ``steps`` times at most; 0 where it reads it again. With ``cut`` rows
    begin anywhere: packs begin where memory is aligned, and what is left of a row before and behind
    them is taken one by one (``loops/alignment.py``)."""

    vector: int = 1
    steps: int = 0
    cut: bool = False


Guarded: TypeAlias = tuple[Sequence[str], T]
"""A way, with all the conditions under which it is taken unless one before it is."""


def print_versions(choices: Sequence[Guarded[T]], body: Callable[[T, int], str]) -> str:
    """The statements of the first way whose conditions hold; the last one has none. ``body`` gives
    those of a way, at an indentation."""
    _, way = choices[-1]
    text = body(way, 1 if len(choices) == 1 else 2)
    for conditions, way in reversed(choices[:-1]):
        first = body(way, 2)
        text = f"  if ({' && '.join(conditions)}) {{\n{first}\n  }} else {{\n{text}\n  }}"
    return text
