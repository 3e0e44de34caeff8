"""Branches, barriers and the end: what ends a straight run of instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.emulator.operands import VCC
from scheduler.isa.rocm.emulator.state import Group, Value, map_waves


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
_BARRIERS = frozenset(["s_barrier", "s_barrier_wait"])
_ENDS = frozenset(["s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"])
_CUTS = ("s_setpc", "s_swappc", "s_call", "s_cbranch", "s_branch", "s_trap", "s_sethalt", "s_rfe")
_NOTHING = (
    *(
        "s_wait",
        "s_nop",
        "s_sleep",
        "s_delay_alu",
        "s_clause",
        "s_setprio",
        "s_sendmsg",
        "s_icache",
    ),
    *("s_dcache", "s_gl1_inv", "s_inst_prefetch", "s_set_inst_prefetch", "s_barrier_signal"),
    *("buffer_gl0_inv", "buffer_gl1_inv", "buffer_inv", "buffer_wbl2", "buffer_wbinvl1"),
    *("global_inv", "global_wb", "s_prefetch", "s_setkill", "s_incperflevel", "s_decperflevel"),
    *("s_ttrace", "s_code_end", "s_version", "v_nop", "ds_nop", "s_sched", "s_round_mode"),
    *("s_denorm_mode", "s_monitor_sleep", "s_set_gpr_idx_off", "s_atc_probe", "v_pipeflush"),
    *("global_wbinv", "s_barrier_leave", "global_prefetch"),
)


def control_of(function: Function, instruction: Instruction, name: str) -> Control | None:
    """Return an instruction's control flow; None if it only computes."""
    if name in _ENDS:
        return Control(Ending.ENDS)
    if name in _BARRIERS:
        return Control(Ending.BARRIER)
    if name == "s_branch" or name in _CONDITIONS:
        target = function.labels.get(instruction.target or instruction.operands.strip())
        if target is None:
            return Control(Ending.CUT)
        if name == "s_branch":
            return Control(Ending.JUMPS, target)
        return Control(Ending.BRANCHES, target, _CONDITIONS[name])
    if name.startswith(_CUTS):
        return Control(Ending.CUT)
    return None


def is_no_op(name: str) -> bool:
    """Whether it is a wait, a hint or a cache operation, which affects no values or addresses."""
    return name.startswith(_NOTHING)
