"""Floating point in the scalar unit: the vector unit's rows over one value per wave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import AluRow, Type
from scheduler.isa.rocm.emulator.constants import bit_width
from scheduler.isa.rocm.emulator.operands import Operands
from scheduler.isa.rocm.emulator.scalar_unit import store_scalar
from scheduler.isa.rocm.emulator.sources import UnreadableError, half_bits, read_source
from scheduler.isa.rocm.emulator.state import Group, collapse

Step = Callable[[Group], None]


def step_of(row: AluRow, operands: Operands) -> Step:
    """``s_add_f32``, ``s_cmp_lt_f32``, ``v_s_rcp_f32``."""
    kind = row.results[0]
    operand_list = list(operands.operands)
    results = [] if kind is Type.MASK else operand_list[:1]
    sources = operand_list[len(results) :]
    if row.accumulates:
        sources = [*sources, *results]
    if len(sources) != len(row.sources):
        raise UnreadableError(row.name)
    reads = [
        read_source(operand, source_type, 0, 1 if operand.half == "h" else 0)
        for operand, source_type in zip(sources, row.sources, strict=True)
    ]
    if kind is Type.MASK:

        def compare(g: Group) -> None:
            bits = row.compute(*[read(g) for read in reads])
            g.scc = collapse(np.ravel(bits).astype(int).tolist())

        return compare
    store = store_scalar(results[0], max(32, bit_width(kind)))

    def step(g: Group) -> None:
        result = row.compute(*[read(g) for read in reads])
        if bit_width(kind) == 16:
            bits: npt.NDArray[Any] = half_bits(result, kind)
        else:
            unsigned = np.uint64 if bit_width(kind) == 64 else np.uint32
            bits = np.ascontiguousarray(result).view(unsigned)
        store(g, collapse(np.ravel(bits).tolist()))

    return step
