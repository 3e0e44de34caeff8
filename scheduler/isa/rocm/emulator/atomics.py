"""Atomic instructions on memory, buffers and LDS: applied lane by lane, in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.isa.rocm.emulator import atomic_operations
from scheduler.isa.rocm.emulator.addresses import (
    AddressFunction,
    global_address,
    lds_address,
    select_by_aperture,
)
from scheduler.isa.rocm.emulator.atomic_operations import AtomicOperation
from scheduler.isa.rocm.emulator.operands import Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import UnreadableError, row_of
from scheduler.isa.rocm.emulator.spaces import GLOBAL, LDS, Space
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.emulator.transfers import Transfer, read_lanes, write_lanes
from scheduler.isa.rocm.instruction_set.table import has_return

Step = Callable[[Group], None]


def step_of(
    space: Space,
    at: AddressFunction,
    operation: AtomicOperation,
    rows: list[int],
    result: int | None,
    index: int,
) -> Step:
    """``rows``: the first registers of the data (two for a comparison in LDS); ``result``: the
    register for the old value."""
    size = 4 * operation.words
    transfer = Transfer(size)
    many = 2 if operation.compares and len(rows) == 1 else 1
    data = Transfer(size * many)

    def step(g: Group) -> None:
        addresses = at(g)
        g.record(index, addresses, size)
        values = np.concatenate([read_lanes(g, row, data) for row in rows])
        flat = space.flat(g, addresses)
        # ``rank``: how many earlier lanes have the same address; they are applied before.
        order = np.argsort(flat, kind="stable")
        place = np.arange(len(flat))
        begins = np.ones(len(flat), bool)
        begins[1:] = np.diff(flat[order]) != 0
        rank = np.empty(len(flat), np.int64)
        rank[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
        old = np.empty((transfer.words, len(flat)), np.uint32)
        for turn in range(int(rank.max(initial=0)) + 1):
            lanes = np.nonzero(rank == turn)[0]
            before = space.fetch(g, index, flat[lanes], transfer)
            after = operation.apply(before, values[:, lanes])
            space.put(g, index, flat[lanes], transfer, after)
            old[:, lanes] = before
        if result is not None:
            write_lanes(g, result, transfer, old)

    return step


def make(name: str, operands: Operands, accumulation: int, index: int) -> Step | None:
    """Make ``global_atomic_*``, ``flat_atomic_*``; None for other instructions."""
    space, _, rest = name.partition("_atomic_")
    if space not in ("global", "flat") or not rest:
        return None
    operation = atomic_operations.memory_operation(rest)
    if operation is None:
        return None
    remaining = list(operands.operands)
    if space == "flat":
        remaining.append(Operand(RegisterFile.OFF, text="off"))
    result = row_of(_vector(remaining.pop(0)), accumulation) if has_return(operands.words) else None
    if len(remaining) != 3:
        raise UnreadableError(name)
    address, data, base = remaining
    rows = [row_of(_vector(data), accumulation)]
    at = global_address(address, base, operands.number("offset"), accumulation)
    if space == "global":
        return step_of(GLOBAL, at, operation, rows, result, index)
    return select_by_aperture(
        at, lambda where, to: step_of(where, to, operation, rows, result, index)
    )


def make_lds(name: str, operands: Operands, accumulation: int, index: int) -> Step | None:
    """Make ``ds_add_u32`` and similar ones; None for other instructions."""
    operation = atomic_operations.lds_operation(name)
    if operation is None:
        return None
    remaining = list(operands.operands)
    result = row_of(_vector(remaining.pop(0)), accumulation) if "_rtn_" in name else None
    address, *data = remaining
    rows = [row_of(_vector(operand), accumulation) for operand in data]
    if len(rows) != (2 if operation.compares else 1):
        raise UnreadableError(name)
    if name.startswith("ds_cmpst_"):  # the comparison value first, unlike all others
        rows.reverse()
    at = lds_address(address, operands.number("offset"), accumulation)
    return step_of(LDS, at, operation, rows, result, index)


def _vector(operand: Operand) -> Operand:
    if operand.file not in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        raise UnreadableError(operand.text)
    return operand
