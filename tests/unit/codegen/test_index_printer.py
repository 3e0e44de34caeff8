"""Integer expressions keep Python's meaning when the C++ compiler reads them."""

from __future__ import annotations

import ctypes
import random

import pytest
import sympy

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.cpp import IndexPrinter
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, symbol
from scheduler.ir.index.ranges import Ranges
from tests.support.caches import KEPT

X, Y, S = symbol("x"), symbol("y"), symbol("s27")
RANGES = Ranges(sizes=(("x", (0, 6)), ("y", (0, 4)), ("s27", (1, 5))))


def random_expr(rng: random.Random, depth: int) -> sympy.Expr:
    if depth == 0:
        return rng.choice([X, Y, S, sympy.Integer(rng.randint(-4, 9))])
    a, b = random_expr(rng, depth - 1), random_expr(rng, depth - 1)
    divisor = rng.choice([S, sympy.Integer(rng.choice([2, 3, 7, -3]))])
    return rng.choice(
        [a + b, a - b, a * b, FloorDiv(a, divisor), Mod(a, divisor), sympy.Max(a, b), -a, a**2]
    )


def expressions() -> list[sympy.Expr]:
    rng = random.Random(20)
    return [random_expr(rng, rng.randint(1, 3)) for _ in range(150)]


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("wide", [False, True])
def test_compiled_expressions_give_what_python_gives(wide: bool) -> None:
    exprs = expressions()
    number = "int32_t" if wide else "int64_t"
    printer = IndexPrinter(wide=wide, ranges=RANGES)
    lines = [f"  out[{i}] = {printer(expr)};" for i, expr in enumerate(exprs)]
    source = "\n".join(
        [
            "#include <hip/hip_runtime.h>",
            "#include <kiln/types.h>",
            "#include <kiln/index.h>",
            f'extern "C" PT_EXPORT int many({number} x, {number} y, {number} s27, int64_t* out) {{',
            *lines,
            "  return 0;",
            "}",
        ]
    )
    made = build(source, "many", targets.find("cpu"), bundled_clang(KEPT), KEPT)
    assert isinstance(made, Build), made
    many = ctypes.CDLL(str(made.directory / "kernel.so")).many
    c_number = ctypes.c_int32 if wide else ctypes.c_int64
    many.argtypes = [c_number, c_number, c_number, ctypes.c_void_p]
    for x, y, s in [(0, 0, 1), (6, 4, 5), (3, 1, 2), (5, 4, 3)]:
        out = (ctypes.c_int64 * len(exprs))()
        assert many(x, y, s, out) == 0
        expected = [evaluate(expr, {"x": x, "y": y, "s27": s}) for expr in exprs]
        wrong = [(e, g, w) for e, g, w in zip(exprs, out, expected, strict=True) if g != w]
        assert not wrong


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (X * 768 + Y, "x * 768 + y"),
        (FloorDiv(X, 3) * 4, "(x / 3) * 4"),
        (FloorDiv(X - 1, 2), "kiln::floor_div(x - 1, 2)"),
        (Mod(X, S), "x % s27"),
        (5 - X, "5 - x"),
        (sympy.Max(X, 4), "kiln::index_max(4, x)"),
        (X * 2**40, "x * INT64_C(1099511627776)"),
    ],
)
def test_text(expr: sympy.Expr, text: str) -> None:
    assert IndexPrinter()(expr) == text


def test_sign_is_known_from_ranges() -> None:
    known = Ranges(sizes=(("x", (1, 9)),))
    assert IndexPrinter(ranges=known)(FloorDiv(X - 1, 2)) == "(x - 1) / 2"


def test_what_is_no_integer_is_rejected() -> None:
    with pytest.raises(TypeError, match="fraction"):
        IndexPrinter()(X / 2)
    with pytest.raises(TypeError, match="sin"):
        IndexPrinter()(sympy.sin(X))
