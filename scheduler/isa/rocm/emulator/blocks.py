"""Instructions over whole register blocks: matrix products, conversions of many elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from scheduler.isa.instructions import Kind
from scheduler.isa.rocm.emulator.alu.row import BlockRow, Type
from scheduler.isa.rocm.emulator.constants import constant_bits
from scheduler.isa.rocm.emulator.operands import Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import UnreadableError, row_of
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.instruction_set.table import kind_of

Step = Callable[[Group], None]
Read = Callable[[Group], npt.NDArray[np.uint32]]
# LLVM before its pull requests 165602 and 178314 (2025, 2026) does not know that these operate on
# whole waves: it may move one, with the code that fills its operands, behind a condition on lanes.
_WHOLE_WAVES = ("v_wmma", "v_swmmac")
_F16_RESULTS = ("v_wmma_f16", "v_swmmac_f16")
_SIGN = np.uint32(0x8000_0000)


def step_of(row: BlockRow, operands: Operands, accumulation: int, index: int) -> Step:
    """For a matrix instruction all lanes count as active, and nothing is computed if the run does
    not need values. An RDNA matrix instruction that runs with inactive lanes is a finding: those
    lanes did not fill their operands."""
    target, *sources = operands.operands
    if len(sources) != len(row.sources) or target.file not in (
        RegisterFile.VECTOR,
        RegisterFile.ACCUMULATION,
    ):
        raise UnreadableError(row.name)
    reads = [
        _read(row, operand, count, accumulation)
        for operand, count in zip(sources, row.sources, strict=True)
    ]
    start = row_of(target, accumulation)
    end = start + row.results
    modifiers = {**operands.modifiers, **dict.fromkeys(operands.words, (1,))}
    matrix = kind_of(row.name) is Kind.MATRIX
    whole = row.name.startswith(_WHOLE_WAVES)

    def step(g: Group) -> None:
        if whole and not g.full and not g.mask.all():
            off = g.mask.size - int(g.mask.sum())
            g.machine.note_partial(f"{row.name} where lanes are off", index, off)
        if matrix and not g.machine.values:
            return
        blocks = [read(g) for read in reads]
        if row.reads_old:
            blocks.append(g.v[start:end].transpose(1, 0, 2))
        result = row.compute(*blocks, modifiers=modifiers).transpose(1, 0, 2)
        if matrix or g.full:
            g.v[start:end] = result
        else:
            np.copyto(g.v[start:end], result, where=g.mask)

    return step


def _read(row: BlockRow, operand: Operand, count: int, accumulation: int) -> Read:
    """Return a function that reads [waves, registers, lanes]."""
    if operand.file is RegisterFile.CONSTANT:
        # The constant in every element of the result's type.
        registers = [constant_bits(operand, Type.B32)]
        if "_f64_" in row.name:
            number = constant_bits(operand, Type.F64)
            registers = [number & 0xFFFF_FFFF, number >> 32]
        elif isinstance(operand.value, float) and row.name.startswith(_F16_RESULTS):
            half = constant_bits(operand, Type.F16)
            registers = [half | half << 16]
        constant = np.array((registers * count)[:count], np.uint32)[None, :, None]
        return lambda g: np.broadcast_to(constant, (g.count, count, g.lanes))
    if operand.file is RegisterFile.SCALAR:
        index = operand.index

        def scalars(g: Group) -> npt.NDArray[np.uint32]:
            columns = [g.vector(g.s[index + number]) for number in range(count)]
            shape = (g.count, g.lanes)
            return np.stack([np.broadcast_to(column, shape) for column in columns], axis=1)

        return scalars
    if operand.file not in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        raise UnreadableError(operand.text)
    start = row_of(operand, accumulation)
    if not operand.negative and not operand.absolute:
        return lambda g: g.v[start : start + count].transpose(1, 0, 2)

    def signed(g: Group) -> npt.NDArray[np.uint32]:
        bits = g.v[start : start + count].transpose(1, 0, 2)
        if operand.absolute:
            bits = bits & ~_SIGN
        return bits ^ _SIGN if operand.negative else bits

    return signed
