"""The registers of waves that run together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.log import AccessRecord, Segment
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.operands import EXEC, M0, SCALARS

Value = int | list[int]
"""A scalar: one number for all waves, or one per wave. Lists are never changed in place."""
Mask = npt.NDArray[np.bool_]
M32 = 0xFFFF_FFFF
OUTSIDE = "outside all buffers"  # a finding's text for an access to unmapped memory


@dataclass(frozen=True)
class Finding:
    """An error that no kernel may make: how many lanes made it and, for an access outside all
    memory, the first address (else None)."""

    what: str
    instruction: int
    address: int | None
    count: int


@dataclass(eq=False)
class Machine:
    """State shared by all waves of a run. ``lds`` is the blocks' LDS in sequence, ``lds_words``
    each; ``scratch`` is words per lane."""

    memory: Memory
    lanes: int
    lds: npt.NDArray[np.uint32]
    lds_words: int
    values: bool
    scratch_words: int = 0
    unknown: dict[int, str] = field(default_factory=dict)
    noted: dict[tuple[str, int], Finding] = field(default_factory=dict)
    recorded: int = 0
    traced: bool = True
    clock: int = 0

    def ticks(self) -> int:
        """Return a clock that advances each time it is read."""
        self.clock += 64
        return self.clock

    def note_outside(self, what: str, instruction: int, addresses: npt.NDArray[np.int64]) -> None:
        """Record accesses outside all memory."""
        self._note(Finding(what, instruction, int(addresses[0]), len(addresses)))

    def note_partial(self, what: str, instruction: int, lanes: int) -> None:
        """Record a whole-wave instruction that ran with so many inactive lanes."""
        self._note(Finding(what, instruction, None, lanes))

    def _note(self, finding: Finding) -> None:
        key = finding.what, finding.instruction
        known = self.noted.get(key)
        if known is not None:
            finding = replace(known, count=known.count + finding.count)
        self.noted[key] = finding

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings in the order of the instructions."""
        return tuple(sorted(self.noted.values(), key=lambda one: one.instruction))


class Group:
    """Waves at the same instruction, in lockstep.

    ``v`` are vector registers [registers, waves, lanes] with views of other types, accumulation
    registers after the architectural ones; ``s`` the scalar registers by number (``operands.py``
    names the special ones). ``full``: every lane of every wave is active; else ``mask`` says which.
    """

    def __init__(
        self, machine: Machine, waves: list[int], blocks: npt.NDArray[np.int64], registers: int
    ) -> None:
        self.machine = machine
        self.waves = waves
        self.blocks = blocks
        self.pc = 0
        self.scc: Value = 0
        self.s: list[Value] = [0] * SCALARS
        self.segment = Segment()
        self._masks: dict[int, tuple[Value, Value, Mask]] = {}
        self.set_registers(np.zeros((registers, len(waves), machine.lanes), np.uint32))
        self.scratch: npt.NDArray[np.uint32] | None = None
        self.set_exec(self.everything)

    def set_registers(self, v: npt.NDArray[np.uint32]) -> None:
        self.v = v
        self.vi = v.view(np.int32)
        self.vf = v.view(np.float32)
        self.vh = v.view(np.uint16)
        self.count, self.lanes = v.shape[1:]
        self.everything = (1 << self.lanes) - 1
        self.lds_base = (self.blocks * self.machine.lds_words * 4)[:, None]

    # -- masks ----------------------------------------------------------------------------------

    def pair(self, index: int) -> Value:
        """Return 64 bits from two scalar registers."""
        return map_waves(lambda low, high: low | high << 32, self.s[index], self.s[index + 1])

    def wide(self, index: int) -> Value:
        """Return as many bits as there are lanes."""
        return self.pair(index) if self.lanes == 64 else self.s[index]

    def set_wide(self, index: int, value: Value) -> None:
        if self.lanes == 64:
            self.set_pair(index, value)
        else:
            self.s[index] = value

    def set_pair(self, index: int, value: Value) -> None:
        if isinstance(value, int):
            self.s[index], self.s[index + 1] = value & M32, value >> 32
        else:
            self.s[index] = [number & M32 for number in value]
            self.s[index + 1] = [number >> 32 for number in value]

    def mask_at(self, index: int) -> Mask:
        """Return a mask in scalar registers as [waves or 1, lanes] booleans."""
        low, high = self.s[index], self.s[index + 1]
        known = self._masks.get(index)
        if known is not None and known[0] is low and known[1] is high:
            return known[2]
        mask = unpack(self.wide(index), self.lanes)
        self._masks[index] = (low, high, mask)
        return mask

    def set_mask(self, index: int, bits: Mask) -> None:
        """Write [waves, lanes] booleans as a mask; inactive lanes give zeros."""
        if bits.shape != (self.count, self.lanes):
            bits = np.broadcast_to(bits, (self.count, self.lanes))
        if not self.full:
            bits = bits & self.mask
        self.set_wide(index, pack(bits))
        self._masks[index] = (self.s[index], self.s[index + 1], bits)
        if index == EXEC:
            self.refresh()

    def set_exec(self, value: Value) -> None:
        """Set EXEC."""
        self.set_wide(EXEC, value)
        self.refresh()

    def refresh(self) -> None:
        """Update the derived state after a change of EXEC."""
        value = self.wide(EXEC)
        self.full = value == self.everything
        self.mask = np.broadcast_to(self.mask_at(EXEC), (self.count, self.lanes))
        self.exec: Value = value
        self.active: Value = (
            value.bit_count() if isinstance(value, int) else [each.bit_count() for each in value]
        )

    # -- other ----------------------------------------------------------------------------------

    @property
    def m0(self) -> Value:
        return self.s[M0]

    def vector(self, value: Value) -> npt.NDArray[np.uint32]:
        """Return a scalar as [waves or 1, 1]."""
        if isinstance(value, int):
            return np.array([[value]], np.uint32)
        return np.array(value, np.uint32)[:, None]

    def wide_vector(self, value: Value) -> npt.NDArray[np.int64]:
        """Return a scalar of 64 bits as [waves or 1, 1] signed."""
        if isinstance(value, int):
            return np.array([[value]], np.uint64).view(np.int64)
        return np.array(value, np.uint64).view(np.int64)[:, None]

    def record(
        self,
        index: int,
        addresses: npt.NDArray[np.int64],
        size: int,
        second: npt.NDArray[np.int64] | None = None,
        scalar: bool = False,
    ) -> None:
        """Record an access of the present run."""
        if not self.machine.traced:
            return
        self.machine.recorded += addresses.size
        mask = None if scalar or self.full else self.mask
        self.segment.records.append(
            AccessRecord(len(self.segment.runs), index, addresses, mask, size, second)
        )


T = TypeVar("T")


def map_waves(function: Callable[..., T], *values: Value) -> T | list[T]:
    """Apply a function of numbers for all waves: once if all are the same."""
    for value in values:
        if not isinstance(value, int):
            break
    else:
        return function(*values)
    count = next(len(value) for value in values if not isinstance(value, int))
    columns = [[value] * count if isinstance(value, int) else value for value in values]
    return [function(*wave_arguments) for wave_arguments in zip(*columns, strict=True)]


def collapse(values: list[int]) -> Value:
    """Return a single number if all waves have the same."""
    first = values[0]
    return first if values.count(first) == len(values) else values


def unpack(value: Value, lanes: int) -> Mask:
    """Convert the bits of 64 or 32 lanes to [waves or 1, lanes] booleans."""
    numbers = np.array([value], np.uint64) if isinstance(value, int) else np.array(value, np.uint64)
    octets = numbers.view(np.uint8).reshape(-1, 8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :lanes].view(np.bool_)


def pack(bits: Mask) -> Value:
    """Convert [waves, lanes] booleans to numbers."""
    octets = np.packbits(bits, axis=1, bitorder="little")
    numbers = octets.view(np.uint64 if octets.shape[1] == 8 else np.uint32)
    return collapse(numbers[:, 0].tolist())
