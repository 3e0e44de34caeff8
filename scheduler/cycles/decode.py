"""Decodes an instruction for the model: its pipe and the cycles it occupies it, the registers it
needs, the counters it increments and those it waits for.

Counters are those of gfx12, which has separate ones for loads, stores, LDS and scalar loads. On
gfx9 stores count as loads; up to gfx11 LDS and scalar loads share one counter.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from scheduler.cycles import matrix
from scheduler.cycles.constants import processor_machine
from scheduler.cycles.report import Pipe, StallReason
from scheduler.isa.listing import Function, Instruction
from scheduler.isa.rocm.liveness import register_mask, registers
from scheduler.targets.cycle_model import Rates
from scheduler.targets.generations import amd_gpu


class IssueClass(IntEnum):
    """How the unit issues an instruction."""

    VECTOR = 0
    MATRIX = 1
    SCALAR = 2
    SCALAR_LOAD = 3
    LDS = 4
    MEMORY = 5
    BRANCH = 6
    WAIT = 7
    BARRIER = 8
    PAUSE = 9  # s_nop, s_sleep: idle for a time
    PRIORITY = 10
    FREE = 11  # consumed from the instruction buffer without an issue slot
    END = 12


class Counter(IntEnum):
    LOADS = 0
    STORES = 1
    LDS = 2
    SCALARS = 3


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
    accumulation. ``counts`` are the counters it increments, ``until`` gives for each counter how
    many operations may remain; ``pause`` is the idle cycles."""

    index: int
    act: IssueClass
    pipe: Pipe | None
    busy: float
    latency: float = 0.0
    reads: int = 0
    chained: int = 0
    writes: int = 0
    counts: tuple[Counter, ...] = ()
    until: tuple[tuple[Counter, int], ...] = ()
    pause: float = 0.0
    priority: int = 0
    direct: bool = False  # it loads directly to LDS
    line: int = 0  # line of the instruction cache


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """The LDS access of an instruction: width per lane of each address, reads or writes."""

    reads: bool
    writes: bool
    atomic: bool
    crossbar: bool  # lanes exchange values; no bank is accessed


_PIPES = {
    IssueClass.VECTOR: Pipe.VECTOR,
    IssueClass.MATRIX: Pipe.MATRIX,
    IssueClass.SCALAR: Pipe.SCALAR,
    IssueClass.SCALAR_LOAD: Pipe.SCALAR,
    IssueClass.LDS: Pipe.LDS,
    IssueClass.MEMORY: Pipe.MEMORY,
    IssueClass.BRANCH: Pipe.BRANCH,
}
_TRANSCENDENTAL = re.compile(
    r"v_(?:s_)?(?:exp|log|rcp|rsq|sqrt|sin|cos|rcp_iflag|log_legacy|exp_legacy|tanh)_"
)
_QUARTER = re.compile(r"v_(?:mul_lo_u32|mul_lo_i32|mul_hi_[ui]32|mad_[ui]64_[ui]32)")
_DOUBLE = re.compile(r"v_(?!cvt|cmp|mfma|pk|div_scale).*_f64")
_DOUBLE_ALL = re.compile(r"v_.*_f64")
_COUNT = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)\((\d+)\)")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_WAITS_12 = {
    "s_wait_loadcnt": (Counter.LOADS,),
    "s_wait_samplecnt": (),
    "s_wait_bvhcnt": (),
    "s_wait_storecnt": (Counter.STORES,),
    "s_wait_dscnt": (Counter.LDS,),
    "s_wait_kmcnt": (Counter.SCALARS,),
    "s_wait_loadcnt_dscnt": (Counter.LOADS, Counter.LDS),
    "s_wait_storecnt_dscnt": (Counter.STORES, Counter.LDS),
}
_FREE = (
    "s_nop",
    "s_waitcnt_depctr",
    "s_wait_alu",
    "s_delay_alu",
    "s_clause",
    "s_set_inst_prefetch",
    "s_inst_prefetch",
    "s_sendmsg",
    "s_setreg",
    "s_icache_inv",
    "s_dcache",
    "s_code_end",
    "s_trap",
    "s_wait_",
)


def decode(
    function: Function, processor: str, rates: Rates, executed: Container[int] | None = None
) -> tuple[DecodedInstruction, ...]:
    """Decode the instructions of a function; those that are not executed are skipped."""
    reader = _Decoder(processor, rates)
    address, found = 0, []
    for index, instruction in enumerate(function.instructions):
        line = address // rates.instruction_line
        if executed is None or index in executed:
            found.append(reader.decode(index, instruction, line))
        else:
            found.append(DecodedInstruction(index, IssueClass.FREE, None, 0, line=line))
        address += encoding_size(instruction)
    return tuple(found)


class _Decoder:
    def __init__(self, processor: str, rates: Rates) -> None:
        self._processor = processor
        self._rates = rates
        self._gpu = amd_gpu(processor)

    def decode(self, index: int, instruction: Instruction, line: int) -> DecodedInstruction:
        name, operands = instruction.mnemonic, instruction.operands
        if name.startswith("v_"):
            return self._vector(index, name, operands, line)
        if name.startswith("ds_"):
            return self._local(index, name, operands, line)
        if name.startswith(("global_", "buffer_", "flat_", "scratch_", "tbuffer_", "image_")):
            return self._memory(index, name, operands, line)
        return self._scalar(index, name, operands, line)

    def _vector(self, index: int, name: str, operands: str, line: int) -> DecodedInstruction:
        rates = self._rates
        reads, writes = _registers(name, operands)
        passes = matrix.cycles(name, self._processor, operands)
        if passes is not None:
            parts = operands.split(",")
            own = register_mask(parts[3]) if len(parts) > 3 else 0
            before = register_mask(",".join(parts[1:3]))
            if name.startswith(("v_smfmac", "v_swmmac")):
                own, before = writes, before | register_mask(",".join(parts[3:]))
            return DecodedInstruction(
                *(index, IssueClass.MATRIX, Pipe.MATRIX, passes, passes + rates.matrix_read),
                reads=before,
                chained=own,
                writes=writes,
                line=line,
            )
        busy, latency = self._rate(name)
        return DecodedInstruction(
            index,
            IssueClass.VECTOR,
            Pipe.VECTOR,
            busy,
            latency,
            reads=reads,
            writes=writes,
            line=line,
        )

    def _rate(self, name: str) -> tuple[float, float]:
        """Return the cycles of the vector pipe, and the further cycles until the result may be
        read."""
        rates = self._rates
        more = rates.vector_latency - rates.vector
        rate = vector_rate(name, self._processor)
        busy: float = getattr(rates, rate)
        if rate == "transcendental" and (name.endswith("_f64") or "_f64_" in name):
            busy *= 2
        return busy, busy + more if more else 0.0

    def _local(self, index: int, name: str, operands: str, line: int) -> DecodedInstruction:
        reads, writes = _registers(name, operands)
        if name in ("ds_nop",):
            return DecodedInstruction(index, IssueClass.FREE, None, 0, line=line)
        return DecodedInstruction(
            *(index, IssueClass.LDS, Pipe.LDS, self._rates.cadence),
            reads=reads | writes,
            counts=(Counter.LDS,),
            line=line,
        )

    def _memory(self, index: int, name: str, operands: str, line: int) -> DecodedInstruction:
        if any(part in name for part in ("_inv", "_wb", "gl0", "gl1")):
            return DecodedInstruction(index, IssueClass.FREE, None, 0, line=line)
        reads, writes = _registers(name, operands)
        returns = bool(writes) or "_load" in name
        counts = [Counter.LOADS if returns or self._gpu.stores_count_as_loads else Counter.STORES]
        if name.startswith("flat_"):
            counts.append(Counter.LDS)
        return DecodedInstruction(
            *(index, IssueClass.MEMORY, Pipe.MEMORY, self._rates.cadence),
            reads=reads | writes,
            counts=tuple(counts),
            direct="_lds_" in name or operands.endswith(" lds"),
            line=line,
        )

    def _scalar(self, index: int, name: str, operands: str, line: int) -> DecodedInstruction:
        rates = self._rates
        if name.startswith(("s_load", "s_buffer_load", "s_store", "s_atomic", "s_memtime")):
            counter = Counter.SCALARS if self._gpu.scalar_loads_have_own_counter else Counter.LDS
            return DecodedInstruction(
                *(index, IssueClass.SCALAR_LOAD, Pipe.SCALAR, rates.scalar),
                counts=(counter,),
                line=line,
            )
        if name in ("s_barrier", "s_barrier_wait"):
            return DecodedInstruction(index, IssueClass.BARRIER, None, 0, line=line)
        if name.startswith("s_endpgm"):
            return DecodedInstruction(index, IssueClass.END, None, 0, line=line)
        until = self._wait_counts(name, operands)
        if until is not None:
            return DecodedInstruction(index, IssueClass.WAIT, None, 0, until=until, line=line)
        number = _NUMBER.search(operands)
        value = int(number[0], 0) if number else 0
        if name == "s_nop":
            return DecodedInstruction(
                index, IssueClass.PAUSE, None, 0, pause=value * rates.cadence, line=line
            )
        if name == "s_sleep":
            return DecodedInstruction(
                index, IssueClass.PAUSE, None, 0, pause=64.0 * value, line=line
            )
        if name == "s_setprio":
            return DecodedInstruction(
                index, IssueClass.PRIORITY, None, 0, priority=value, line=line
            )
        if name.startswith(_FREE) or name == "s_barrier_signal":
            return DecodedInstruction(index, IssueClass.FREE, None, 0, line=line)
        if name.startswith(("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")):
            return DecodedInstruction(
                index, IssueClass.BRANCH, Pipe.BRANCH, rates.scalar, line=line
            )
        return DecodedInstruction(index, IssueClass.SCALAR, Pipe.SCALAR, rates.scalar, line=line)

    def _wait_counts(self, name: str, operands: str) -> tuple[tuple[Counter, int], ...] | None:
        """Return the counters that a wait waits for; None if it waits for no counter."""
        if name == "s_waitcnt":
            return (
                _parse_symbolic_wait(operands)
                if "cnt" in operands
                else _parse_packed_wait(operands)
            )
        if name in ("s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_lgkmcnt"):
            counter = {
                "s_waitcnt_vscnt": Counter.STORES,
                "s_waitcnt_vmcnt": Counter.LOADS,
                "s_waitcnt_lgkmcnt": Counter.LDS,
            }[name]
            return ((counter, _last_number(operands)),)
        if name in _WAITS_12:
            counters, value = _WAITS_12[name], _last_number(operands)
            if len(counters) == 2:
                return ((counters[0], value >> 8 & 63), (counters[1], value & 63))
            return tuple((counter, value) for counter in counters)
        return None


def vector_rate(name: str, processor: str) -> str:
    """Return the constant for the cycles that a vector instruction occupies its pipe."""
    if _TRANSCENDENTAL.match(name):
        return "transcendental"
    if _DOUBLE.match(name):
        return "double"
    if _QUARTER.match(name):
        return "quarter"
    every = processor_machine(processor).f64_conversions_double
    return "double" if every and _DOUBLE_ALL.match(name) else "vector"


_registers = lru_cache(maxsize=1 << 16)(registers)  # decoded at each end of the constants


def _parse_symbolic_wait(operands: str) -> tuple[tuple[Counter, int], ...]:
    names = {"vmcnt": Counter.LOADS, "lgkmcnt": Counter.LDS, "vscnt": Counter.STORES}
    return tuple(
        (names[name], int(value)) for name, value in _COUNT.findall(operands) if name in names
    )


def _parse_packed_wait(operands: str) -> tuple[tuple[Counter, int], ...]:
    """Parse gfx9's immediate: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8."""
    value = _last_number(operands)
    loads = value & 15 | value >> 10 & 48
    lds = value >> 8 & 15
    found = []
    if loads < 63:
        found.append((Counter.LOADS, loads))
    if lds < 15:
        found.append((Counter.LDS, lds))
    return tuple(found)


def _last_number(operands: str) -> int:
    numbers = _NUMBER.findall(operands)
    return int(numbers[-1], 0) if numbers else 0


_WIDE_PREFIXES = ("ds_", "global_", "buffer_", "flat_", "scratch_", "v_mfma", "v_smfmac", "v_wmma")
_LITERAL = re.compile(r"(?:^|[ ,])(?:0x[0-9a-f]{3,}|-?\d{3,}|0x[4-9a-f][0-9a-f])(?:$|,|\s)")


def encoding_size(instruction: Instruction) -> int:
    """Return the bytes of its encoding, by name and operands: 4, 8 with a literal or a long form,
    12 with both. The listing does not contain it, so code addresses are approximate."""
    name, operands = instruction.mnemonic, instruction.operands
    if name.startswith(_WIDE_PREFIXES) or name.startswith(("s_load", "s_buffer", "v_pk_")):
        return 8
    literal = 4 if _LITERAL.search(operands) else 0
    if name.startswith("v_"):
        short = name.endswith(("_e32", "_dpp", "_sdwa")) or name in ("v_nop",)
        if name.endswith(("_dpp", "_sdwa")):
            return 8
        return (4 if short else 8) + literal
    return 4 + (literal if not name.startswith(("s_branch", "s_cbranch", "s_waitcnt")) else 0)


_LOCAL_READ = re.compile(r"ds_(?:read|load|bpermute|permute|swizzle|consume|append)|ds_\w+_rtn_")
_LOCAL_WRITE = re.compile(
    r"ds_(?:write|store|add|sub|inc|dec|min|max|and|or|xor|cmpst|pk_add|wrxchg)"
)
_CROSSBAR = re.compile(r"ds_(?:bpermute|permute|swizzle)")


def local_access(mnemonic: str) -> LocalAccess:
    """Return an LDS instruction's memory access."""
    reads = _LOCAL_READ.match(mnemonic) is not None
    writes = _LOCAL_WRITE.match(mnemonic) is not None
    plain = mnemonic.startswith(("ds_write", "ds_store"))
    return LocalAccess(
        reads=reads,
        writes=writes,
        atomic=writes and not plain,
        crossbar=_CROSSBAR.match(mnemonic) is not None,
    )
