"""A tensor's values on the host: logical (float64, int, bool), and as a buffer's storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values, from_bits, widen
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Buffer

Array: TypeAlias = npt.NDArray[Any]
_MAX_BYTES = 2**47  # maximum of one buffer: the address space
_CHUNK = 2**22  # elements converted at a time, so that no copy of a whole large tensor is made


@dataclass(frozen=True)
class BoundBuffer:
    """A buffer at concrete sizes; strides in elements."""

    name: str
    dtype: DType
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Elements from the first to the last that the strides reach; 0 if a size is 0."""
        if any(size == 0 for size in self.size):
            return 0
        reach = zip(self.size, self.stride, strict=True)
        return 1 + sum((size - 1) * stride for size, stride in reach)

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.elements * self.dtype.itemsize


def bind_buffer(buffer: Buffer, bindings: Bindings) -> BoundBuffer:
    """Return the buffer at these sizes. Raises ``KeyError`` for a symbol without a value.

    Raises ``UserError`` if a size or stride is negative, or the buffer exceeds the address space:
    code that indexes the storage relies on it.
    """
    size = tuple(evaluate(extent, bindings) for extent in buffer.size)
    stride = tuple(evaluate(extent, bindings) for extent in buffer.stride)
    bound = BoundBuffer(buffer.name, buffer.dtype, size, stride)
    if min((*size, *stride), default=0) < 0:
        raise UserError(f"{buffer.name} has a negative size or stride at {_format_sizes(bindings)}")
    if bound.nbytes > _MAX_BYTES or max((*size, *stride), default=0) > _MAX_BYTES:
        raise UserError(f"{buffer.name} is larger than any memory at {_format_sizes(bindings)}")
    return bound


def _format_sizes(bindings: Bindings) -> str:
    return format_bindings(bindings) or "its fixed sizes"


def to_storage(values: Array, buffer: BoundBuffer) -> Array:
    """Convert logical values (in the buffer's shape) to the buffer's storage, 1-D.

    Elements that no index reaches are 0. Floats are rounded to the buffer's type.
    """
    storage: Array = np.zeros(buffer.elements, dtype=buffer.dtype.numpy)
    if buffer.elements:
        _strided(storage, buffer)[...] = encode_values(values, buffer.dtype)
    return storage


def from_storage(storage: Array, buffer: BoundBuffer) -> Array:
    """Return the logical values of a buffer: float64 for floats, complex128 for complex numbers,
    its own type for others."""
    if not buffer.elements:
        return np.zeros(buffer.size, dtype=buffer.dtype.reference_numpy)
    return widen(_strided(storage, buffer), buffer.dtype)


def from_storage_native(storage: Array, buffer: BoundBuffer) -> Array:
    """Return the logical values of a buffer, without a copy if NumPy has its type.

    f16, f32 and f64 are unchanged; types stored as bits become float32.
    """
    if not buffer.elements:
        return np.zeros(buffer.size, dtype=buffer.dtype.reference_numpy)
    if buffer.dtype.is_stored_as_bits:
        wide = np.empty(storage.size, dtype=np.float32)
        for start in range(0, storage.size, _CHUNK):
            piece = storage[start : start + _CHUNK]
            wide[start : start + _CHUNK] = from_bits(piece, buffer.dtype)
        storage = wide
    return _strided(storage, buffer)


def _strided(storage: Array, buffer: BoundBuffer) -> Array:
    strides = tuple(stride * storage.itemsize for stride in buffer.stride)
    return np.lib.stride_tricks.as_strided(storage, buffer.size, strides)
