"""Rows of the emulated vector unit by name, and numbers that are awkward to compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import AluRow, BlockRow
from scheduler.isa.rocm.emulator.tables import FLOAT_ROWS, block_rows
from scheduler.targets.generations import amd_gpu

ROWS: Mapping[str, AluRow] = {row.name: row for row in FLOAT_ROWS}
Array = npt.NDArray[Any]


def run(name: str, *sources: Array) -> Any:
    """What a row computes, with floating-point errors ignored as the engine has it."""
    with np.errstate(all="ignore"):
        return ROWS[name].compute(*sources)


def block(name: str, processor: str) -> BlockRow:
    """The row of a matrix instruction or conversion on a processor."""
    return block_rows(amd_gpu(processor).features)[name]


def any_bits(dtype: type, count: int, rng: np.random.Generator) -> Array:
    """Floats of any bits: denormals, infinities and NaNs among them."""
    width = np.dtype(dtype).itemsize
    return rng.integers(0, 256, count * width, dtype=np.uint8).view(dtype)


def same(got: Array, expected: Array) -> npt.NDArray[np.bool_]:
    """Equal bit for bit, of NaNs any."""
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    assert got.dtype == expected.dtype
    equal: npt.NDArray[np.bool_] = got.view(unsigned) == expected.view(unsigned)
    return equal | (np.isnan(got) & np.isnan(expected))
