"""Performance hazards in a kernel's resources and listing, for any hardware."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function
from scheduler.targets import boards


class HazardKind(StrEnum):
    """Kinds of hazards, the worst first."""

    SPILLS = "spills"
    SCRATCH = "scratch"
    BANK_CONFLICTS = "bank conflicts"
    UNCOALESCED = "uncoalesced accesses"
    NARROW = "narrow accesses"
    CODE_SIZE = "code size"


@dataclass(frozen=True)
class Hazard:
    """One hazard of a build, with its figures in ``text``; ``lines`` are the listing's lines of the
    instructions concerned, if any."""

    hazard: HazardKind
    text: str
    lines: tuple[int, ...] = ()


def code_size_hazards(code_bytes: int, target: str) -> tuple[Hazard, ...]:
    """Return a hazard if the code exceeds the instruction cache of the target's reference board
    (``Board.instruction_cache_bytes``)."""
    return tuple(
        Hazard(
            HazardKind.CODE_SIZE,
            f"{code_bytes} bytes of code exceed the instruction cache of"
            f" {board.instruction_cache_bytes} bytes",
        )
        for board in boards(target)[:1]
        if code_bytes > board.instruction_cache_bytes
    )


def private_memory_hazards(function: Function) -> tuple[Hazard, ...]:
    """Return the instructions that access a thread's private memory: spilled registers, and arrays
    whose index is known only at run time."""
    lines = tuple(
        instruction.line
        for instruction in function.instructions
        if instruction.kind is Kind.SCRATCH
    )
    if not lines:
        return ()
    verb = " accesses" if len(lines) == 1 else "s access"
    text = f"{len(lines)} instruction{verb} thread-private memory"
    return (Hazard(HazardKind.SCRATCH, text, lines),)
