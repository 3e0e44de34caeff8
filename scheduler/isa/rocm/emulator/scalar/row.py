"""What a row of the scalar unit's table says of an instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.isa.rocm.emulator.alu.row import Type


@dataclass(frozen=True)
class ScalarRow:
    """One instruction by its oldest name. ``compute`` takes its sources as integers (signed ones
    of signed types) and gives the result, of which as many bits as ``result`` has are kept.

    ``sets``: it gives (result, SCC), or SCC alone without a result. ``reads``: SCC is the last
    source. ``accumulates``: the old result is the first source and is not in the text.
    """

    name: str
    result: Type | None
    sources: tuple[Type, ...]
    compute: Callable[..., Any]
    sets: bool = False
    reads: bool = False
    accumulates: bool = False
