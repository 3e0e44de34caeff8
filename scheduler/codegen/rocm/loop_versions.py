"""The versions of a device function's loop over rows; sizes select one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class LoopVersion:
    """A thread takes ``vector`` neighbouring steps at a time. Repeated reads stay in registers if a
    thread takes at most ``steps`` of them; 0 if they are read again. With ``cut``, rows begin
    anywhere: packs begin at aligned addresses, and the rest of a row before and after them is
    processed one step at a time (``loops/alignment.py``)."""

    vector: int = 1
    steps: int = 0
    cut: bool = False


Guarded: TypeAlias = tuple[Sequence[str], T]
"""A version with the conditions under which it runs, unless an earlier one does."""


def print_versions(choices: Sequence[Guarded[T]], body: Callable[[T, int], str]) -> str:
    """Return the statements of the first version whose conditions hold; the last one has none.
    ``body`` gives a version's statements at an indentation."""
    _, way = choices[-1]
    text = body(way, 1 if len(choices) == 1 else 2)
    for conditions, way in reversed(choices[:-1]):
        first = body(way, 2)
        text = f"  if ({' && '.join(conditions)}) {{\n{first}\n  }} else {{\n{text}\n  }}"
    return text
