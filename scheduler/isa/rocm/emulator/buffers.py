"""Accesses through a buffer descriptor: base, stride, number of records, bounds checks.

Source: AMD's ISA references (CDNA3 9.1.5 "Memory buffer addressing", RDNA3 and RDNA4 likewise).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scheduler.isa.rocm.emulator import atomic_operations
from scheduler.isa.rocm.emulator.addresses import AddressFunction, restrict_lanes
from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.atomics import step_of as atomic_step
from scheduler.isa.rocm.emulator.memory import Addresses
from scheduler.isa.rocm.emulator.operands import Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import Read, UnreadableError, read_raw, row_of
from scheduler.isa.rocm.emulator.spaces import GLOBAL, SCRATCH
from scheduler.isa.rocm.emulator.state import Group, Mask
from scheduler.isa.rocm.emulator.transfers import Transfer, transfer_of, write_lanes
from scheduler.isa.rocm.emulator.vector_memory import load_step, load_to_lds_step, store_step
from scheduler.isa.rocm.instruction_set.table import has_return

Step = Callable[[Group], None]
SCRATCH_FLAGS = 1 << 23
"""ADD_TID_ENABLE in a descriptor's last word: lanes are interleaved, as in scratch."""
_NUMBERS = 1 << 32


@dataclass(frozen=True)
class BufferAccess:
    """The operands of an access: ``offset`` and ``index`` of each lane, if given."""

    descriptor: int
    scalar_offset: Read
    offset: Read | None
    index: Read | None
    fixed: int
    by_stride: bool
    """GFX9's rule for out-of-range accesses; later descriptors select the rule."""

    def is_scratch(self, g: Group) -> bool:
        flags = g.s[self.descriptor + 3]
        return bool((flags if isinstance(flags, int) else flags[0]) & SCRATCH_FLAGS)

    def scratch(self, g: Group) -> Addresses:
        """Return byte offsets within the lane's memory: the scalar offset counts all lanes'
        bytes."""
        offsets = self._offsets(g) + self.scalar_offset(g).astype(np.int64) // g.lanes
        return np.broadcast_to(offsets, (g.count, g.lanes))

    def _offsets(self, g: Group) -> Addresses:
        if self.offset is None:
            return np.full((1, 1), self.fixed, np.int64)
        return self.offset(g).astype(np.int64) + self.fixed

    def _resolve(self, g: Group) -> tuple[Addresses, Addresses, Addresses]:
        """Return [waves, lanes] addresses, the offsets to check, and indices."""
        words = [g.vector(g.s[self.descriptor + word]).astype(np.int64) for word in range(2)]
        base = words[0] | (words[1] & 0xFFFF) << 32
        stride = words[1] >> 16 & 0x3FFF
        index = np.zeros((1, 1), np.int64) if self.index is None else self.index(g).astype(np.int64)
        offset = self._offsets(g)
        scalar = self.scalar_offset(g).astype(np.int64)
        addresses = base + scalar + offset + index * stride
        return np.broadcast_to(addresses, (g.count, g.lanes)), offset + scalar, index

    def addresses(self, g: Group) -> Addresses:
        return self._resolve(g)[0]

    def in_range(self, g: Group, size: int) -> Mask:
        """Return which lanes' accesses of that many bytes are in range."""
        _, offset, index = self._resolve(g)
        second, records, flags = (
            g.vector(g.s[self.descriptor + word]).astype(np.int64) for word in (1, 2, 3)
        )
        stride = second >> 16 & 0x3FFF
        raw_fits = offset + size <= records
        if self.by_stride:
            fits = np.where(stride == 0, raw_fits, index < records)
        else:
            rule = flags >> 28 & 3
            structured = (index < records) & ((stride == 0) | (offset + size <= stride))
            fits = np.select(
                [rule == 0, rule == 1, rule == 2],
                [structured, index < records, records != 0],
                raw_fits,
            )
        return np.broadcast_to(fits, (g.count, g.lanes))


def parse_buffer(
    operands: list[Operand], all_: Operands, accumulation: int, by_stride: bool
) -> BufferAccess:
    """Parse the address, the descriptor and the scalar offset."""
    if len(operands) != 3 or operands[1].file is not RegisterFile.SCALAR or operands[1].count < 4:
        raise UnreadableError("a buffer's operands")
    address, descriptor, scalar = operands
    words = all_.words
    offset = index = None
    if address.file is not RegisterFile.OFF:
        rows = [row_of(address, accumulation) + number for number in range(address.count)]
        if "idxen" in words:
            index = _row(rows.pop(0))
        if "offen" in words:
            offset = _row(rows.pop(0))
    return BufferAccess(
        *(descriptor.index, read_raw(scalar, 32, accumulation, Type.U32), offset, index),
        *(all_.number("offset"), by_stride),
    )


def _row(row: int) -> Read:
    return lambda g: g.v[row]


def make(
    name: str, operands: Operands, accumulation: int, index: int, by_stride: bool
) -> Step | None:
    """Make ``buffer_load_*``, ``buffer_store_*``, ``buffer_atomic_*``; None for other
    instructions."""
    if not name.startswith("buffer_"):
        return None
    verb, _, kind = name.removeprefix("buffer_").partition("_")
    remaining = list(operands.operands)
    if verb == "atomic":
        operation = atomic_operations.memory_operation(kind)
        if operation is None:
            return None
        row = row_of(remaining.pop(0), accumulation)
        buffer = parse_buffer(remaining, operands, accumulation, by_stride)
        word_transfer = Transfer(4 * operation.words)
        returns = has_return(operands.words)
        step = atomic_step(
            *(GLOBAL, buffer.addresses, operation, [row], row if returns else None, index)
        )
        outside = _zeros(row, word_transfer) if returns else None
        return _bounds_checked(buffer, step, outside, word_transfer.size)
    if verb not in ("load", "store"):
        return None
    to_lds = "lds" in operands.words or kind.startswith("lds_")
    transfer = transfer_of(kind.removeprefix("lds_"), verb == "load")
    if transfer is None:
        return None
    data = None if to_lds else remaining.pop(0)
    buffer = parse_buffer(remaining, operands, accumulation, by_stride)
    if data is None:
        at: AddressFunction = buffer.addresses
        step = load_to_lds_step(at, operands.number("offset"), transfer, index)
        return _bounds_checked(buffer, step, step_outside=None, size=transfer.size)
    row = row_of(data, accumulation)
    if transfer.size == 2 and data.half:
        transfer = Transfer(2, transfer.signed, 1 if data.half == "h" else 0)
    move = load_step if verb == "load" else store_step
    plain = move(GLOBAL, buffer.addresses, row, transfer, index)
    in_scratch = move(SCRATCH, buffer.scratch, row, transfer, index)
    outside = _zeros(row, transfer) if verb == "load" else None
    guarded = _bounds_checked(buffer, plain, outside, transfer.size)
    return lambda g: in_scratch(g) if buffer.is_scratch(g) else guarded(g)


def _zeros(row: int, transfer: Transfer) -> Step:
    def step(g: Group) -> None:
        write_lanes(g, row, transfer, np.zeros((transfer.words, int(g.mask.sum())), np.uint32))

    return step


def _bounds_checked(buffer: BufferAccess, step: Step, step_outside: Step | None, size: int) -> Step:
    """Skip memory for lanes that are out of range."""

    def guarded(g: Group) -> None:
        fits = buffer.in_range(g, size)
        if fits.all():
            step(g)
            return
        if step_outside is not None:
            with restrict_lanes(g, ~fits):
                step_outside(g)
        with restrict_lanes(g, fits):
            step(g)

    return guarded
