"""The rows of the scalar unit's table: one describes one instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.isa.rocm.emulator.alu.row import Type


@dataclass(frozen=True)
class ScalarRow:
    """One instruction by its oldest name. ``compute`` takes its sources as integers (signed for
    signed types) and returns the result, which is truncated to the bits of ``result``.

    ``sets``: it returns (result, SCC), or SCC alone without a result. ``reads``: SCC is the last
    source. ``accumulates``: the old result is the first source and is not in the text.
    """

    name: str
    result: Type | None
    sources: tuple[Type, ...]
    compute: Callable[..., Any]
    sets: bool = False
    reads: bool = False
    accumulates: bool = False
