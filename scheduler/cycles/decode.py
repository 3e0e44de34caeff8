"""Decodes an instruction for the model: its pipe and the cycles it occupies it, the registers it
needs, the counters it increments and those it waits for. What its name says is in the table of
``isa/rocm/instruction_set``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, replace
from functools import lru_cache

from scheduler.cycles import matrix
from scheduler.cycles.constants import processor_machine
from scheduler.cycles.report import Pipe, StallReason
from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.instruction_set.matrix import matrix_shape
from scheduler.isa.rocm.instruction_set.memory import loads_to_lds
from scheduler.isa.rocm.instruction_set.row import Counter, Effect, IssueClass
from scheduler.isa.rocm.instruction_set.table import Opcode, find_opcode
from scheduler.isa.rocm.liveness import register_mask, registers
from scheduler.targets.amd import AmdHardware
from scheduler.targets.cycle_model import Rates
from scheduler.targets.generations import amd_gpu

WAIT_REASONS = {
    Counter.LOADS: StallReason.GLOBAL,
    Counter.STORES: StallReason.STORE,
    Counter.LDS: StallReason.LDS,
    Counter.SCALARS: StallReason.SCALAR,
}


@dataclass(frozen=True, slots=True)
class DecodedInstruction:
    """``busy`` is the cycles of the pipe, ``latency`` those until ``writes`` may be read (0: when
    the next instruction issues). ``chained`` are registers read only by the matrix pipe's own
    accumulation. ``until`` gives for each counter that it waits for how many operations may
    remain; ``pause`` is the idle cycles."""

    index: int
    issue_class: IssueClass
    pipe: Pipe | None
    busy: float
    latency: float = 0.0
    reads: int = 0
    chained: int = 0
    writes: int = 0
    incremented_counters: tuple[Counter, ...] = ()
    until: tuple[tuple[Counter, int], ...] = ()
    pause: float = 0.0
    priority: int = 0
    direct: bool = False  # it loads directly to LDS
    line: int = 0  # line of the instruction cache


_PIPES = {
    IssueClass.VECTOR: Pipe.VECTOR,
    IssueClass.MATRIX: Pipe.MATRIX,
    IssueClass.SCALAR: Pipe.SCALAR,
    IssueClass.SCALAR_LOAD: Pipe.SCALAR,
    IssueClass.LDS: Pipe.LDS,
    IssueClass.MEMORY: Pipe.MEMORY,
    IssueClass.BRANCH: Pipe.BRANCH,
}
_DOUBLE = re.compile(r"v_(?!cvt|cmp|mfma|pk|div_scale).*_f64")
_DOUBLE_ALL = re.compile(r"v_.*_f64")
_COUNT = re.compile(r"(vmcnt|lgkmcnt|vscnt)\((\d+)\)")
_COUNT_NAMES = {"vmcnt": Counter.LOADS, "lgkmcnt": Counter.LDS, "vscnt": Counter.STORES}
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_LITERAL = re.compile(r"(?:^|[ ,])(?:0x[0-9a-f]{3,}|-?\d{3,}|0x[4-9a-f][0-9a-f])(?:$|,|\s)")


def decode(
    function: Function, processor: str, rates: Rates, executed: Container[int] | None = None
) -> tuple[DecodedInstruction, ...]:
    """Decode the instructions of a function; those that are not executed are skipped."""
    gpu = amd_gpu(processor)
    address, decoded = 0, []
    for index, instruction in enumerate(function.instructions):
        line = address // rates.instruction_line
        if executed is None or index in executed:
            decoded.append(_decode_instruction(index, instruction, line, gpu, rates))
        else:
            decoded.append(DecodedInstruction(index, IssueClass.FREE, None, 0, line=line))
        address += encoding_size(instruction)
    return tuple(decoded)


def _decode_instruction(
    index: int, instruction: Instruction, line: int, gpu: AmdHardware, rates: Rates
) -> DecodedInstruction:
    name, operands = instruction.mnemonic, instruction.operands
    opcode = find_opcode(name)
    issue = opcode.issue
    decoded = DecodedInstruction(index, issue, _PIPES.get(issue), 0.0, line=line)
    number = _NUMBER.search(operands)
    value = int(number[0], 0) if number else 0
    match issue:
        case IssueClass.VECTOR | IssueClass.MATRIX:
            return _decode_vector(decoded, name, operands, gpu.processor, rates)
        case IssueClass.LDS:
            reads, writes = _registers(name, operands)
            counts = (Counter.LDS,)
            return replace(
                decoded, busy=rates.cadence, reads=reads | writes, incremented_counters=counts
            )
        case IssueClass.MEMORY:
            reads, writes = _registers(name, operands)
            loads = bool(writes) or "_load" in name or gpu.stores_count_as_loads
            counter = Counter.LOADS if loads else Counter.STORES
            return replace(
                decoded,
                busy=rates.cadence,
                reads=reads | writes,
                incremented_counters=(counter, Counter.LDS)
                if name.startswith("flat_")
                else (counter,),
                direct=loads_to_lds(name, operands),
            )
        case IssueClass.SCALAR_LOAD:
            counter = Counter.SCALARS if gpu.scalar_loads_have_own_counter else Counter.LDS
            return replace(decoded, busy=rates.scalar, incremented_counters=(counter,))
        case IssueClass.SCALAR | IssueClass.BRANCH:
            return replace(decoded, busy=rates.scalar)
        case IssueClass.WAIT:
            return replace(decoded, until=_wait_counts(opcode, operands))
        case IssueClass.PAUSE:
            unit = rates.cadence if name == "s_nop" else 64.0
            return replace(decoded, pause=value * unit)
        case IssueClass.PRIORITY:
            return replace(decoded, priority=value)
        case _:
            return decoded


def _decode_vector(
    decoded: DecodedInstruction, name: str, operands: str, processor: str, rates: Rates
) -> DecodedInstruction:
    reads, writes = _registers(name, operands)
    shape, passes = matrix_shape(name), matrix.cycles(name, processor, operands)
    if shape is None or passes is None:
        constant_name = vector_constant(name, processor)
        busy: float = getattr(rates, constant_name)
        if constant_name == "transcendental" and (name.endswith("_f64") or "_f64_" in name):
            busy *= 2
        more = rates.vector_latency - rates.vector
        latency = busy + more if more else 0.0
        return replace(decoded, busy=busy, latency=latency, reads=reads, writes=writes)
    parts = operands.split(",")
    accumulator = register_mask(parts[3]) if len(parts) > 3 else 0
    factors = register_mask(",".join(parts[1:3]))
    if shape.is_sparse:
        accumulator, factors = writes, factors | register_mask(",".join(parts[3:]))
    return replace(
        decoded,
        busy=passes,
        latency=passes + rates.matrix_read,
        reads=factors,
        chained=accumulator,
        writes=writes,
    )


def _wait_counts(opcode: Opcode, operands: str) -> tuple[tuple[Counter, int], ...]:
    """Return the counters that a wait waits for, and how many operations may remain."""
    if opcode.name == "s_waitcnt" and "cnt" in operands:
        return tuple((_COUNT_NAMES[name], int(count)) for name, count in _COUNT.findall(operands))
    numbers = _NUMBER.findall(operands)
    value = int(numbers[-1], 0) if numbers else 0
    counters = opcode.row.counters
    if opcode.name == "s_waitcnt":
        # gfx9's immediate: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8; all ones: no wait
        fields = zip(
            counters, (value & 15 | value >> 10 & 48, value >> 8 & 15), (63, 15), strict=True
        )
        return tuple((counter, count) for counter, count, none in fields if count < none)
    if len(counters) == 2:
        return ((counters[0], value >> 8 & 63), (counters[1], value & 63))
    return tuple((counter, value) for counter in counters)


def vector_constant(name: str, processor: str) -> str:
    """Return the constant for the cycles that a vector instruction occupies its pipe."""
    if rate := find_opcode(name).row.rate:
        return rate
    every = processor_machine(processor).f64_conversions_double
    return "double" if (_DOUBLE_ALL if every else _DOUBLE).match(name) else "vector"


_registers = lru_cache(maxsize=1 << 16)(registers)  # decoded at each end of the constants


def encoding_size(instruction: Instruction) -> int:
    """Return the bytes of its encoding, by name and operands: 4, 8 with a literal or a long form,
    12 with both. The listing does not contain it, so code addresses are approximate."""
    opcode = find_opcode(instruction.mnemonic)
    if opcode.is_wide or opcode.source in ("dpp", "sdwa"):
        return 8
    literal = 4 if _LITERAL.search(instruction.operands) else 0
    if opcode.issue is IssueClass.VECTOR:
        is_short = opcode.size == "e32" or opcode.row.effect is Effect.NOTHING
        return (4 if is_short else 8) + literal
    has_literal = opcode.issue is not IssueClass.BRANCH and not opcode.name.startswith("s_waitcnt")
    return 4 + (literal if has_literal else 0)
