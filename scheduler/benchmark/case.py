"""One problem to check and time candidates on: concrete buffers, inputs, and what must come out.

A case lies in a folder (``case.json`` and ``arrays.npz``), so that a worker process can open it
without the engine having to compute anything there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.bfloat16 import bfloat16_to_float32, float32_to_bfloat16
from scheduler.ir.dtypes import DType

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class CaseBuffer:
    """A buffer at concrete sizes; strides in elements."""

    name: str
    dtype: DType
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Elements from the first to the last that the strides reach; 0 where a size is 0."""
        if any(size == 0 for size in self.size):
            return 0
        reach = zip(self.size, self.stride, strict=True)
        return 1 + sum((size - 1) * stride for size, stride in reach)

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.elements * self.dtype.itemsize


@dataclass(frozen=True)
class Case:
    """Buffers of one kernel call at one binding.

    ``inputs`` maps a buffer to its storage (1-D, host type of the dtype, strides applied by the
    reader); ``expected`` maps an output to the float64 (or integer) reference in its logical
    shape, with ``tolerances`` beside it.
    """

    buffers: Mapping[str, CaseBuffer]
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    tolerances: Mapping[str, Tolerance]
    bindings: Mapping[str, int]

    def save(self, folder: Path) -> None:
        """Write the case into an existing folder."""
        facts = {
            "buffers": [
                [b.name, b.dtype.label, list(b.size), list(b.stride)] for b in self.buffers.values()
            ],
            "tolerances": {n: [t.relative, t.absolute] for n, t in self.tolerances.items()},
            "bindings": dict(self.bindings),
        }
        (folder / "case.json").write_text(json.dumps(facts))
        arrays = {f"in:{name}": array for name, array in self.inputs.items()}
        arrays |= {f"out:{name}": array for name, array in self.expected.items()}
        np.savez(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(folder: Path) -> Case:
        """Read a case that ``save`` wrote."""
        facts = json.loads((folder / "case.json").read_text())
        buffers = {
            name: CaseBuffer(name, DType.from_label(label), tuple(size), tuple(stride))
            for name, label, size, stride in facts["buffers"]
        }
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            inputs = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in:")}
            expected = {k[4:]: arrays[k] for k in arrays.files if k.startswith("out:")}
        tolerances = {name: Tolerance(*pair) for name, pair in facts["tolerances"].items()}
        return Case(buffers, inputs, expected, tolerances, facts["bindings"])


def to_storage(values: Array, buffer: CaseBuffer) -> Array:
    """Logical values (float64, int or bool, in the buffer's shape) as the buffer's storage.

    Elements that no index reaches are 0. Floats are rounded to the buffer's type.
    """
    storage = np.zeros(buffer.elements, dtype=buffer.dtype.numpy)
    if buffer.elements:
        _strided(storage, buffer)[...] = _round(values, buffer.dtype)
    return storage


def from_storage(storage: Array, buffer: CaseBuffer) -> Array:
    """The logical values of a buffer: float64 for floats, the own type for the rest."""
    if not buffer.elements:
        return np.zeros(buffer.size, dtype=np.float64 if buffer.dtype.is_float else storage.dtype)
    return widen(_strided(storage, buffer), buffer.dtype)


def widen(array: Array, dtype: DType) -> Array:
    """Floats as float64; integers and booleans as they are."""
    if dtype is DType.BF16:
        return bfloat16_to_float32(array.astype(np.uint16)).astype(np.float64)
    return array.astype(np.float64) if dtype.is_float else array.copy()


def _round(values: Array, dtype: DType) -> Array:
    if dtype is DType.BF16:
        return float32_to_bfloat16(values.astype(np.float32))
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy)


def _strided(storage: Array, buffer: CaseBuffer) -> Array:
    strides = tuple(stride * storage.itemsize for stride in buffer.stride)
    return np.lib.stride_tricks.as_strided(storage, buffer.size, strides)
