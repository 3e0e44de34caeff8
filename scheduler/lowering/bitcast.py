"""Reinterpret the bits of elements as a type of the same or another size (little-endian)."""

from __future__ import annotations

from functools import reduce
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.simplify import simplify
from scheduler.ir.values import Call, Value, call, const, index_value, upcast
from scheduler.lowering import trees, views
from scheduler.lowering.builder import Builder
from scheduler.lowering.complex_numbers import lazy_unary, view_as_real
from scheduler.lowering.tensor import Index, Tensor

_UNSIGNED = {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}


def view(b: Builder, self: Tensor, **_: Any) -> Tensor:
    """Another shape of the elements, or another type: the last dimension then scales with the ratio
    of the element sizes."""
    dtype = b.output_meta().dtype
    return views.view(b, self) if dtype is self.dtype else bitcast(b, self, dtype)


def bitcast(b: Builder, tensor: Tensor, target: DType) -> Tensor:
    """The tensor's memory as elements of ``target``."""
    source = tensor.dtype
    if source is target:
        return tensor
    if source.is_complex:
        parts, two = view_as_real(b, tensor), sympy.Integer(2)
        size = (*tensor.size[:-1], tensor.size[-1] * 2)
        interleaved = parts.view(size, lambda i: (*i[:-1], FloorDiv(i[-1], two), Mod(i[-1], two)))
        return bitcast(b, interleaved, target)
    if target.is_complex:
        reals = bitcast(b, tensor, target.real)
        pairs = simplify(FloorDiv(reals.size[-1], sympy.Integer(2)))

        def at(index: Index) -> Value:
            parts = (reals.at((*index[:-1], index[-1] * 2 + component)) for component in range(2))
            return call("complex", *parts)

        return Tensor((*reals.size[:-1], pairs), target, at, "", reals.nodes)
    if source is DType.BOOL:
        return bitcast(b, lazy_unary(tensor, DType.U8, lambda x: trees.cast(x, DType.U8)), target)
    if target is DType.BOOL:
        codes = bitcast(b, tensor, DType.U8)
        return lazy_unary(codes, target, lambda x: trees.cast(x, target))
    if source.itemsize == target.itemsize:
        return lazy_unary(tensor, target, lambda x: _cast(x, source, target))
    if source.itemsize > target.itemsize:
        return _split(tensor, target)
    return _join(tensor, target)


def _cast(value: Value, source: DType, target: DType) -> Value:
    """An element's bits as another type of the same size."""
    if source is target:
        return value
    return Call("bit_cast", (trees.cast(value, source),), target)


def round_exactly(value: Value, dtype: DType) -> Value:
    """Round ``value`` to ``dtype`` where the interpreter would otherwise keep it exact. The result
    has that type and is to be upcast like a loaded element."""
    integer_type = _UNSIGNED[dtype.itemsize]
    return _cast(_cast(value, dtype, integer_type), integer_type, dtype)


def _split(tensor: Tensor, target: DType) -> Tensor:
    source, word_type = tensor.dtype, _UNSIGNED[tensor.dtype.itemsize]
    part_type, count = _UNSIGNED[target.itemsize], source.itemsize // target.itemsize

    def at(index: Index) -> Value:
        *leading, last = index
        word = _cast(tensor.at((*leading, FloorDiv(last, sympy.Integer(count)))), source, word_type)
        shift = index_value(Mod(last, sympy.Integer(count)) * (8 * target.itemsize))
        shifted = call("rshift", word, upcast(shift, word_type))
        return _cast(trees.cast(shifted, part_type), part_type, target)

    return Tensor((*tensor.size[:-1], tensor.size[-1] * count), target, at, "", tensor.nodes)


def _join(tensor: Tensor, target: DType) -> Tensor:
    source, word_type = tensor.dtype, _UNSIGNED[target.itemsize]
    part_type, count = _UNSIGNED[source.itemsize], target.itemsize // source.itemsize
    size = simplify(FloorDiv(tensor.size[-1], sympy.Integer(count)))

    def at(index: Index) -> Value:
        words = []
        for position in range(count):
            element = tensor.at((*index[:-1], index[-1] * count + position))
            extended = trees.cast(_cast(element, source, part_type), word_type)
            shift = const(8 * source.itemsize * position, word_type)
            words.append(call("lshift", extended, shift) if position else extended)
        joined = reduce(lambda x, y: call("bitwise_or", x, y), words)
        return _cast(joined, word_type, target)

    return Tensor((*tensor.size[:-1], size), target, at, "", tensor.nodes)
