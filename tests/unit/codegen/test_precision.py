"""Which calls of a kernel are fast: those that only f16 and bf16 elements are made of."""

from __future__ import annotations

from scheduler.codegen.printing.precision import fast_calls, store_root
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Cast, Const, Load, Value, call, const

X = Load("x", (), DType.F32)
EXP = Call("exp", (X,), DType.F32)


def fast(value: Value, dtype: DType) -> set[str]:
    calls = fast_calls([store_root(value, dtype)])
    return {each.op for each in calls[True]} - {each.op for each in calls[False]}


def test_what_is_stored_as_a_short_float_is_fast() -> None:
    for dtype in (DType.F16, DType.BF16):
        assert fast(call("mul", EXP, X), dtype) == {"mul", "exp"}


def test_wider_floats_and_floats_of_8_bits_are_exact() -> None:
    for dtype in (DType.F32, DType.F64, DType.F8E4M3FN):
        assert not fast(EXP, dtype)


def test_what_is_rounded_on_its_way_to_a_wider_float_is_fast() -> None:
    assert fast(Cast(EXP, DType.F16), DType.F32) == {"exp"}


def test_what_is_compared_or_becomes_a_whole_number_is_exact() -> None:
    less = call("where", call("lt", EXP, const(1, DType.F32)), X, Const(0.0, DType.F32))
    assert "exp" not in fast(less, DType.F16)
    assert not fast(call("floor", EXP), DType.F16) - {"floor"}
    assert not fast(Cast(Cast(EXP, DType.I32), DType.F32), DType.F16)


def test_the_strictest_use_of_a_value_counts() -> None:
    calls = fast_calls([store_root(EXP, DType.F16), store_root(EXP, DType.F32)])
    assert not calls[True]
    assert calls[False] == [EXP]
