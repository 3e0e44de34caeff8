"""Figures that builds share whatever their instruction sets: occupancy and its limiter, registers,
live registers, the inner loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen_app.kernels.models import Build
from codegen_app.kernels.queries.resource_use import resource_use
from scheduler import targets
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, count_kinds
from scheduler.isa.occupancy import rules_of
from scheduler.isa.reader import ListingReader


@dataclass(frozen=True)
class ProfileRow:
    """One figure of every side as text ("2 of 8"), "" if a side has none."""

    name: str
    note: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether any side's value differs from the first's."""
        return len(set(self.values)) > 1


def profile_rows(
    builds: Sequence[Build],
    functions: Sequence[tuple[ListingReader, Function] | None],
) -> tuple[ProfileRow, ...]:
    """Return the rows that any side has. ``functions`` are the instructions of each side's device
    function with the most registers, None if they are not read."""
    sides = [_texts(build, function) for build, function in zip(builds, functions, strict=True)]
    rows = (
        ProfileRow(name, note, tuple(side.get(name, "") for side in sides))
        for name, note in _NOTES.items()
    )
    return tuple(row for row in rows if any(value not in ("", "0") for value in row.values))


_NOTES = {
    "Occupancy": "resident waves, of the maximum",
    "Limited by": "the resource that limits occupancy",
    "Registers": "per thread",
    "Live registers": "peak number of live vector registers",
    "Instructions": "of the device function",
    "Inner loop": "instructions of the loop that takes the most time",
    "Matrix in loop": "matrix instructions, and their share of the loop",
    "Vector in loop": "",
    "Memory in loop": "global memory, LDS and scratch",
    "Waits in loop": "",
}
_LOOP_KINDS = {
    "Matrix in loop": (Kind.MATRIX,),
    "Vector in loop": (Kind.VECTOR,),
    "Memory in loop": (Kind.GLOBAL, Kind.LDS, Kind.SCRATCH),
    "Waits in loop": (Kind.WAIT,),
}


def _texts(build: Build, main: tuple[ListingReader, Function] | None) -> dict[str, str]:
    """Return a side's figures by name; what is unknown is left out."""
    texts: dict[str, str] = {}
    used, rules = resource_use(build.resources, build.target), rules_of(targets.find(build.target))
    if used is not None and rules is not None:
        waves, by = rules.waves_heading
        texts["Occupancy"] = f"{used.words} {waves.lower()} {by}"
        texts["Limited by"] = used.limiter
        texts["Registers"] = str(used.registers)
    if main is None:
        return texts
    reader, function = main
    texts["Instructions"] = str(len(function.instructions))
    live = reader.live_registers(function)
    if live is not None:
        texts["Live registers"] = str(live.peak)
    loop = function.inner_loop()
    if loop is None:
        return texts | {"Inner loop": "no loop"}
    counts = count_kinds(function.loop_instructions(loop))
    total = sum(counts.values())
    texts["Inner loop"] = str(total)
    for name, kinds in _LOOP_KINDS.items():
        count = sum(counts.get(kind, 0) for kind in kinds)
        texts[name] = f"{count} ({100 * count / total:.0f}%)" if count else "0"
    return texts
