"""What in a kernel's resources and in its listing is likely to cost time, whoever's hardware."""

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
    """One hazard of a build, with its figures in ``text``; ``lines`` are those of the listing
    whose instructions it is about, where it is about some."""

    hazard: HazardKind
    text: str
    lines: tuple[int, ...] = ()


def code_size_hazards(code_bytes: int, target: str) -> tuple[Hazard, ...]:
    """Code that is more than the instruction cache of the target's reference board
    (``Board.instruction_cache_bytes``) holds."""
    return tuple(
        Hazard(
            HazardKind.CODE_SIZE,
            f"{code_bytes} bytes of code, more than the instruction cache of"
            f" {board.instruction_cache_bytes} bytes",
        )
        for board in boards(target)[:1]
        if code_bytes > board.instruction_cache_bytes
    )


def private_memory_hazards(function: Function) -> tuple[Hazard, ...]:
    """The instructions that go to memory for what a thread keeps for itself: spilled registers,
    and arrays whose index is only known at run time."""
    lines = tuple(one.line for one in function.instructions if one.kind is Kind.SCRATCH)
    if not lines:
        return ()
    plural = "" if len(lines) == 1 else "s"
    text = f"{len(lines)} instruction{plural} on memory of a thread's own"
    return (Hazard(HazardKind.SCRATCH, text, lines),)
