"""``rngprims.philox_rand``: the numbers that torch draws on an NVIDIA GPU from a seed and an
offset.

docs/random.md specifies the numbers; the reference is written from it independently.
"""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import FloorDiv, symbol
from scheduler.ir.index.simplify import product
from scheduler.ir.random import BLOCKS
from scheduler.ir.values import Cast, Const, Value, call, const, index_value, upcast
from scheduler.lowering import layout
from scheduler.lowering.bitcast import round_exactly
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Index, Tensor

_BLOCK_THREADS = 256  # threads per block
#: Numbers by which a generator call advances the offset, however many it draws.
_NUMBERS_PER_CALL = 4
_CALL_SHIFT_BITS = 2  # shift from an offset, which counts numbers, to generator calls


def philox_rand(
    b: Builder, seed: Tensor, offset: Tensor, stride: Any = None, **_: Any
) -> tuple[Tensor, Tensor]:
    """Uniform numbers, and the amount by which the offset advances."""
    meta = b.output_meta()
    if stride is not None or not meta.dtype.is_float or meta.dtype.is_float8:
        raise Unsupported(
            f"torch's uniform random numbers of type {meta.dtype.label}, or with other "
            "strides, are not supported"
        )
    count = product(meta.size)
    # One thread per element, up to the number that torch's GPU runs at once.
    needed_threads = (
        FloorDiv(count + (_BLOCK_THREADS - 1), sympy.Integer(_BLOCK_THREADS)) * _BLOCK_THREADS
    )
    resident_threads = index_value(symbol(BLOCKS) * _BLOCK_THREADS)
    threads = call(
        "minimum", resident_threads, call("maximum", index_value(needed_threads), _BLOCK_THREADS)
    )
    first = call(
        "bitwise_and",
        call("rshift", _scalar_value(offset), Const(_CALL_SHIFT_BITS, DType.I64)),
        Const((1 << 62) - 1, DType.I64),  # an offset is unsigned
    )
    drawn_per_call = 2 if meta.dtype is DType.F64 else 4  # numbers that a call draws

    def words(index: Index) -> tuple[Value, Value, Value]:
        """Both halves of an element's counter, and which number of the call the element is."""
        strides = layout.contiguous_strides(meta.size)
        position = index_value(sympy.Add(*(i * s for i, s in zip(index, strides, strict=True))))
        round_number = call("floordiv", position, threads)
        counter = first + call("floordiv", round_number, Const(drawn_per_call, DType.I64))
        word_number = call("remainder", round_number, Const(drawn_per_call, DType.I64))
        return counter, call("remainder", position, threads), word_number

    def read(index: Index) -> Value:
        counter, thread, word_number = words(index)

        def word(word_index: Value) -> Value:
            return call("philox_word", counter, thread, _scalar_value(seed), word_index)

        if meta.dtype is DType.F64:  # 53 bits from two consecutive words
            low = word_number * 2
            high = call("lshift", word(low + 1), 21)
            bits: Value = Cast(call("bitwise_xor", word(low), high), DType.F64)
            return _below_one(bits * 2.0 ** (-53) + 2.0 ** (-54), DType.F64)
        # 32 bits as a number between 0 and 1, rounded to float32, then to the type
        bits = round_exactly(Cast(word(word_number), DType.F32), DType.F32)
        scaled = bits * const(2.0 ** (-32), DType.F32) + const(2.0 ** (-33), DType.F32)
        return _below_one(scaled, meta.dtype)

    def consumed(_: Index) -> Value:
        """The numbers consumed. Every call counts as four numbers, whatever the type."""
        rounds = call("floordiv", index_value(count - 1), threads * _NUMBERS_PER_CALL)
        return (rounds + 1) * _NUMBERS_PER_CALL

    values = b.pointwise(meta.size, meta.dtype, read)
    return values, b.pointwise((), DType.I64, consumed)


def _scalar_value(tensor: Tensor) -> Value:
    return upcast(tensor.at((sympy.Integer(0),) * tensor.rank), DType.I64)


def _below_one(value: Value, dtype: DType) -> Value:
    """A number rounded to the type; 1 becomes 0."""
    compute_dtype = dtype.compute_dtype
    if dtype is not DType.F64:
        value = upcast(round_exactly(round_exactly(value, DType.F32), dtype), compute_dtype)
    return call("where", call("eq", value, 1), 0, value)
