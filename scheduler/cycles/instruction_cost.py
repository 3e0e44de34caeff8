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
from scheduler.cycles.constants import rates_at
from scheduler.cycles.constants_table import MEANINGS
from scheduler.cycles.decode import decode, vector_constant
from scheduler.isa.cuda.describe import rate_dtype
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.instruction_set.row import Counter, IssueClass
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware
from scheduler.targets.cycle_model import End, Machine
from scheduler.targets.nvidia import GUIDE, NvidiaHardware


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
        return Cost(tuple(_nvidia_facts(target, mnemonic)), _UNPUBLISHED)
    if not isinstance(target.hardware, AmdHardware) or target.emulates:
        return Cost((), f"Instruction costs on {target.name} are unknown.")
    if target.hardware.machine is None:
        return Cost((), f"The model has no figures for {target.name}.")
    return Cost(tuple(_amd_facts(target, mnemonic, target.hardware, target.hardware.machine)), "")


def _amd_facts(target: Target, mnemonic: str, gpu: AmdHardware, machine: Machine) -> Iterator[Fact]:
    function = Function("", 1, 1, (Instruction(1, mnemonic, "", Kind.OTHER, 0),), {})
    (decoded,) = decode(function, gpu.processor, rates_at(target, End.FAST))
    if decoded.issue_class is IssueClass.MATRIX:
        cycles = matrix.cycles(mnemonic, gpu.processor)
        source = "AMD's white papers and matrix instruction calculator: passes of 4 cycles"
        yield Fact("occupies the matrix pipe of its SIMD for", f"{cycles} cycles", source)
        definition = "m · n · k; a multiply-add counts as two"
        yield Fact("operations", f"{matrix.flops(mnemonic):,}", definition)
    constants = machine.constants()
    for name in _CONSTANTS.get(decoded.issue_class, ()):
        constant_name = vector_constant(mnemonic, gpu.processor) if name == "vector" else name
        constant = constants[constant_name]
        ends = sorted({constant.fast, constant.slow})
        if name == "vector" and decoded.busy != constant.fast:  # f64 takes twice the cycles
            ends = [decoded.busy]
        value = "\N{EN DASH}".join(f"{end:g}" for end in ends)
        yield Fact(MEANINGS[constant_name], f"{value} {constant.unit}", constant.source)
    counters = _COUNTERS[gpu.scalar_loads_have_own_counter]
    if decoded.incremented_counters:
        names = ", ".join(counters[counter] for counter in decoded.incremented_counters)
        yield Fact("counters", names, "AMD's ISA documents")
    if decoded.issue_class is IssueClass.FREE:
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


_UNPUBLISHED = (
    "NVIDIA publishes no latencies of SASS instructions, and listings do not show the stall counts"
    " and scoreboards that its compiler sets."
)


def _nvidia_facts(target: Target, mnemonic: str) -> Iterator[Fact]:
    board = next(iter(targets.boards(target.name)), None)
    dtype = rate_dtype(mnemonic)
    if board is not None and (rate := board.vector.get(dtype)):
        lanes = 2 if dtype == "f16" else 1
        warps = rate / 2 / lanes / 32
        yield Fact("throughput", f"{warps:g} warps' instructions per cycle and SM", GUIDE)
    match = _HMMA.match(mnemonic)
    tensor_rate = board.matrix.get("f16") if board is not None else None
    if match is not None and tensor_rate and "TF32" not in mnemonic:
        # The least distance of two that the published peak allows.
        operations = 2 * 16 * int(match["n"]) * int(match["k"])
        distance = 4 * operations / tensor_rate
        value = f"one per {distance:g} cycles on each of the SM's four tensor cores"
        yield Fact("maximum throughput", value, "the board's published f16 peak")
    for name, results in (("MUFU", 16), ("SHFL", 32)):
        if re.match(rf"{name}\b", mnemonic):
            yield Fact("throughput", f"{results} results per cycle and SM", GUIDE)


_HMMA = re.compile(r"HMMA\.16(?P<n>8)(?P<k>8|16)\b")
