"""Branches, barriers and the end: what ends a straight run of instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.emulator.operands import VCC
from scheduler.isa.rocm.emulator.state import Group, Value, map_waves
from scheduler.isa.rocm.instruction_set.row import Effect
from scheduler.isa.rocm.instruction_set.table import find_opcode


class Ending(StrEnum):
    """Why a run of instructions stops."""

    FALLS = "falls through"
    JUMPS = "jumps"
    BRANCHES = "branches"
    BARRIER = "barrier"
    ENDS = "ends"
    CUT = "unknown control flow"


@dataclass(frozen=True)
class Control:
    """``target`` is an instruction's index; ``condition`` returns whether a branch is taken, for
    all waves or for each."""

    ending: Ending
    target: int = -1
    condition: Callable[[Group], Value] | None = None


def _zero_test(zero: bool) -> Callable[[int], int]:
    return lambda value: int((value == 0) == zero)


_CONDITIONS: dict[str, Callable[[Group], Value]] = {
    "s_cbranch_scc0": lambda g: map_waves(_zero_test(True), g.scc),
    "s_cbranch_scc1": lambda g: map_waves(_zero_test(False), g.scc),
    "s_cbranch_vccz": lambda g: map_waves(_zero_test(True), g.wide(VCC)),
    "s_cbranch_vccnz": lambda g: map_waves(_zero_test(False), g.wide(VCC)),
    "s_cbranch_execz": lambda g: map_waves(_zero_test(True), g.exec),
    "s_cbranch_execnz": lambda g: map_waves(_zero_test(False), g.exec),
}


def control_of(function: Function, instruction: Instruction, name: str) -> Control | None:
    """Return an instruction's control flow; None if it only computes."""
    effect = find_opcode(name).row.effect
    if effect is Effect.ENDS:
        return Control(Ending.ENDS)
    if effect is Effect.BARRIER:
        return Control(Ending.BARRIER)
    if effect in (Effect.VALUES, Effect.NOTHING):
        return None
    target = function.labels.get(instruction.target or instruction.operands.strip())
    if target is not None and effect is Effect.JUMPS:
        return Control(Ending.JUMPS, target)
    if target is not None and name in _CONDITIONS:
        return Control(Ending.BRANCHES, target, _CONDITIONS[name])
    return Control(Ending.CUT)
