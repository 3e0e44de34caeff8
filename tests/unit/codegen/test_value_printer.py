"""Trees as statements: what is shared, guarded, wrapped and rounded."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.codegen.cpp import Lines, Marks, Memory, ValuePrinter, literal
from scheduler.codegen.kernel import LineOrigin
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Store
from scheduler.ir.values import (
    Accumulator,
    Call,
    Cast,
    Const,
    IndexValue,
    Indirect,
    Load,
    Masked,
    Value,
    loads,
)
from tests.unit.codegen.loopnest import buffer

F32, F16, BF16, I64 = DType.F32, DType.F16, DType.BF16, DType.I64
X = symbol("x0")


def printed(value: Value, out: DType = F32, nodes: tuple[str, ...] = ()) -> list[str]:
    memory = {
        "a": Memory("in_ptr0", buffer("a", value_dtype(value, "a"), (8, 4))),
        "i": Memory("in_ptr1", buffer("i", I64, (8,))),
        "y": Memory("out_ptr0", buffer("y", out, (8, 4))),
    }
    marks = Marks()
    lines = Lines(marks, 0)
    printer = ValuePrinter(lines, memory, {"acc": "acc"})
    printer.store(Store("y", (X, symbol("x1")), value, nodes))
    return marks.finish(str(lines))[0].split("\n")


def value_dtype(value: Value, name: str) -> DType:
    return next((load.dtype for load in loads(value) if load.buffer == name), F32)


def load(dtype: DType = F32) -> Load:
    return Load("a", (X, symbol("x1")), dtype)


def test_equal_parts_are_computed_once() -> None:
    square = Call("mul", (load(), load()), F32)
    again = Call("mul", (load(), load()), F32)
    assert printed(Call("add", (square, again), F32)) == [
        "const float tmp0 = in_ptr0[x0 * 4 + x1];",
        "const float tmp1 = tmp0 * tmp0;",
        "const float tmp2 = tmp1 + tmp1;",
        "out_ptr0[x0 * 4 + x1] = tmp2;",
    ]


def test_a_tree_with_much_sharing_is_walked_once() -> None:
    value: Value = load()
    for _ in range(60):  # 2^60 paths
        value = Call("add", (value, value), F32)
    assert len(printed(value)) == 62


def test_only_narrowing_casts_round() -> None:
    widened = Cast(load(BF16), F32)
    rounded = Cast(Call("neg", (widened,), F32), BF16)
    assert printed(Call("neg", (Cast(rounded, F32),), F32)) == [
        "const float tmp0 = kiln::to_float(in_ptr0[x0 * 4 + x1]);",
        "const float tmp1 = -tmp0;",
        "const float tmp2 = kiln::to_float(kiln::from_float<__bf16>(tmp1));",
        "const float tmp3 = -tmp2;",
        "out_ptr0[x0 * 4 + x1] = tmp3;",
    ]


def test_stores_round_once_to_the_buffers_type() -> None:
    rounded = Cast(Call("neg", (load(),), F32), F16)
    assert printed(rounded, F16)[-1] == "out_ptr0[x0 * 4 + x1] = kiln::from_float<_Float16>(tmp1);"


def test_sixteen_bit_elements_are_copied_as_they_are() -> None:
    assert printed(Cast(load(BF16), F32), BF16) == ["out_ptr0[x0 * 4 + x1] = in_ptr0[x0 * 4 + x1];"]


def test_masked_reads_happen_only_behind_their_condition() -> None:
    inside = Call("lt", (IndexValue(X, I64), Const(3, I64)), DType.BOOL)
    text = printed(Masked(inside, Call("exp", (load(),), F32), Const(-math.inf, F32)))
    assert text[2:] == [
        "float tmp4 = -__builtin_inff();",
        "if (tmp1) {",
        "  const float tmp2 = in_ptr0[x0 * 4 + x1];",
        "  const float tmp3 = kiln::exp(tmp2);",
        "  tmp4 = tmp3;",
        "}",
        "out_ptr0[x0 * 4 + x1] = tmp4;",
    ]


def test_what_is_computed_behind_a_condition_is_not_known_after_it() -> None:
    inside = Call("lt", (IndexValue(X, I64), Const(3, I64)), DType.BOOL)
    guarded = Masked(inside, load(), Const(0.0, F32))
    text = "\n".join(printed(Call("add", (guarded, load()), F32)))
    assert text.count("= in_ptr0[") == 2


def test_indices_from_memory_are_wrapped_or_clamped() -> None:
    row = Load("i", (X,), I64)
    for wrap, helper in ((True, "wrap_index"), (False, "clamp_index")):
        indirect = Indirect(symbol("ind0"), row, symbol("s0"), wrap)
        text = printed(Load("a", (symbol("ind0"), symbol("x1")), F32, (indirect,)))
        assert text[1] == f"const int32_t tmp1 = static_cast<int32_t>(kiln::{helper}(tmp0, s0));"
        assert text[2] == "out_ptr0[x0 * 4 + x1] = in_ptr0[tmp1 * 4 + x1];"


def test_lines_say_which_node_they_compute() -> None:
    value = Call(
        "add", (Call("mul", (load(), load()), F32, "mul_1"), Accumulator(F32)), F32, "add_2"
    )
    marks = Marks()
    lines = Lines(marks, 0)
    memory = {n: Memory(n, buffer(n, F32, (8, 4))) for n in ("a", "y")}
    ValuePrinter(lines, memory, {"acc": "acc"}).store(
        Store("y", (X, symbol("x1")), value, ("mul_1", "add_2"))
    )
    text, origins = marks.finish("// head\n" + str(lines))
    assert "\x00" not in text
    assert origins == (
        LineOrigin(2, 2, ("mul_1", "add_2")),
        LineOrigin(3, 3, ("mul_1",)),
        LineOrigin(4, 4, ("add_2",)),
        LineOrigin(5, 5, ("mul_1", "add_2")),
    )


@given(st.floats(width=32))
def test_float_literals_are_exact(value: float) -> None:
    text = literal(value, F32)
    if math.isnan(value):
        assert text == '__builtin_nanf("")'
    elif math.isinf(value):
        assert text == ("-" if value < 0 else "") + "__builtin_inff()"
    else:
        assert text.endswith("f")
        assert np.float32(float(text[:-1])) == np.float32(value)
        assert math.copysign(1, float(text[:-1])) == math.copysign(1, value)


@given(st.floats())
def test_double_literals_are_exact(value: float) -> None:
    text = literal(value, DType.F64)
    if math.isfinite(value):
        assert struct.pack("d", float(text)) == struct.pack("d", value)


def test_integer_literals_fit_their_type() -> None:
    assert literal(-(2**31), DType.I32) == "(-2147483647 - 1)"
    assert literal(-(2**63), I64) == "(-INT64_C(9223372036854775807) - 1)"
    assert literal(-5, I64) == "(INT64_C(-5))"
    assert literal(300, DType.U8) == "44"
    assert literal(True, DType.BOOL) == "true"
