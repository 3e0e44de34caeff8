"""The known cost of an instruction, by its name alone, each figure with its source.

AMD: the constants of the model, and what ``decode`` derives from the name. NVIDIA: published rates;
latencies of SASS are not published.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scheduler import targets
from scheduler.cycles import matrix
from scheduler.cycles.constants import machine, rates_at
from scheduler.cycles.constants_table import MEANINGS
from scheduler.cycles.decode import DecodedInstruction, decode, vector_rate
from scheduler.isa.cuda.describe import rate_dtype
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.instruction_set.row import Counter, IssueClass
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware, amd_hardware
from scheduler.targets.cycle_model import Constant, End
from scheduler.targets.nvidia import NvidiaHardware

_GUIDE = "CUDA C++ Programming Guide: throughput of native arithmetic instructions"


@dataclass(frozen=True)
class Fact:
    """A figure of an instruction with its unit and its source."""

    name: str
    value: str
    source: str


@dataclass(frozen=True)
class Cost:
    """The known figures; ``note`` says what is unknown."""

    facts: tuple[Fact, ...]
    note: str


def cost_of(target: Target, mnemonic: str) -> Cost:
    """Return the cost of an instruction on a target."""
    if isinstance(target.hardware, NvidiaHardware):
        return _nvidia(target, mnemonic)
    if not isinstance(target.hardware, AmdHardware) or target.emulates:
        return Cost((), f"Instruction costs on {target.name} are unknown.")
    try:
        machine(target)
    except KeyError:
        return Cost((), f"The model has no figures for {target.name}.")
    return Cost(tuple(_amd(target, mnemonic)), "")


def _amd(target: Target, mnemonic: str) -> Iterator[Fact]:
    known, gpu = machine(target).constants(), amd_hardware(target)
    ends = [_decode_alone(target, mnemonic, end) for end in (End.FAST, End.SLOW)]
    if ends[0].act is IssueClass.MATRIX:
        yield from _matrix(mnemonic, gpu.processor)
    for name in _CONSTANTS.get(ends[0].act, ()):
        named = vector_rate(mnemonic, gpu.processor) if name == "vector" else name
        yield _constant(named, known[named], double=ends[0].busy if name == "vector" else None)
    if counters := [_COUNTERS[gpu.scalar_loads_have_own_counter][one] for one in ends[0].counts]:
        yield Fact("counters", ", ".join(counters), "AMD's ISA documents")
    if ends[0].act is IssueClass.FREE:
        yield Fact("issue", "no issue slot", "LLVM; AMD's ISA documents")


_CONSTANTS = {
    IssueClass.VECTOR: ("vector", "vector_latency", "cadence"),
    IssueClass.MATRIX: ("matrix_read", "matrix_chain"),
    IssueClass.SCALAR: ("scalar",),
    IssueClass.SCALAR_LOAD: ("scalar", "scalar_latency"),
    IssueClass.LDS: ("lds_latency", "lds_port", "lds_queue"),
    IssueClass.MEMORY: ("address", "l1_latency", "l2_latency", "memory_latency"),
    IssueClass.BRANCH: ("scalar", "branch"),
    IssueClass.BARRIER: ("barrier",),
}
_COUNTERS = {
    False: {
        Counter.LOADS: "vmcnt",
        Counter.STORES: "vscnt",
        Counter.LDS: "lgkmcnt",
        Counter.SCALARS: "lgkmcnt",
    },
    True: {
        Counter.LOADS: "loadcnt",
        Counter.STORES: "storecnt",
        Counter.LDS: "dscnt",
        Counter.SCALARS: "kmcnt",
    },
}


def _decode_alone(target: Target, mnemonic: str, end: End) -> DecodedInstruction:
    one = Instruction(1, mnemonic, "", Kind.OTHER, 0)
    alone = Function("", 1, 1, (one,), {})
    return decode(alone, amd_hardware(target).processor, rates_at(target, end))[0]


def _constant(name: str, constant: Constant, double: float | None) -> Fact:
    """``double`` is the cycles of one of two passes, if they differ from the constant."""
    ends = sorted({constant.fast, constant.slow})
    if double is not None and double != constant.fast:
        ends = [double]
    value = "\N{EN DASH}".join(f"{end:g}" for end in ends)
    return Fact(MEANINGS[name], f"{value} {constant.unit}", constant.source)


def _matrix(mnemonic: str, processor: str) -> Iterator[Fact]:
    cycles = matrix.cycles(mnemonic, processor)
    source = "AMD's white papers and matrix instruction calculator: passes of 4 cycles"
    yield Fact("occupies the matrix pipe of its SIMD for", f"{cycles} cycles", source)
    note = "m · n · k; a multiply-add counts as two"
    yield Fact("operations", f"{matrix.flops(mnemonic):,}", note)


_UNPUBLISHED = (
    "NVIDIA publishes no latencies of SASS instructions, and listings do not show the stall counts"
    " and scoreboards that its compiler sets."
)


def _nvidia(target: Target, mnemonic: str) -> Cost:
    board = next(iter(targets.boards(target.name)), None)
    facts: list[Fact] = []
    if board is not None:
        if rate := board.vector.get(rate_dtype(mnemonic)):
            lanes = 2 if rate_dtype(mnemonic) == "f16" else 1
            warps = rate / 2 / lanes / 32
            value = f"{warps:g} warps' instructions per cycle and SM"
            facts.append(Fact("throughput", value, _GUIDE))
        if (found := _tensor(mnemonic, board.matrix.get("f16"))) is not None:
            facts.append(found)
    if re.match(r"MUFU\b", mnemonic):
        facts.append(Fact("throughput", "16 results per cycle and SM", _GUIDE))
    if re.match(r"SHFL\b", mnemonic):
        facts.append(Fact("throughput", "32 results per cycle and SM", _GUIDE))
    return Cost(tuple(facts), _UNPUBLISHED)


_HMMA = re.compile(r"HMMA\.16(?P<n>8)(?P<k>8|16)\b")


def _tensor(mnemonic: str, rate: float | None) -> Fact | None:
    """For products of 16-bit floats: the least distance of two that the published peak allows."""
    match = _HMMA.match(mnemonic)
    if match is None or not rate or "TF32" in mnemonic:
        return None
    operations = 2 * 16 * int(match["n"]) * int(match["k"])
    value = f"one per {4 * operations / rate:g} cycles on each of the SM's four tensor cores"
    return Fact("maximum throughput", value, "the board's published f16 peak")
