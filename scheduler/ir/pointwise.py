"""The pointwise functions that ``Call.op`` may name: one row per function, in NumPy and C++.

All arguments of a call have its ``dtype`` (comparisons: one common type, and a bool result;
``where``: a bool first). Lowering promotes by torch's rules and inserts casts into the tree, so
that printers translate a call by its name alone. A value of f16 or bf16 is computed in f32
(``DType.compute_dtype``): calls on it have the type f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from scheduler.ir import numerics
from scheduler.ir.dtypes import DType


class Domain(StrEnum):
    """The element types that a function accepts."""

    FLOAT = "float"
    NUMBER = "number"  # floats and integers
    INTEGER = "integer"
    BOOL = "bool"
    ANY = "any"
    COMPLEX = "complex"


class Result(StrEnum):
    """The type of a call's result."""

    SAME = "same"  # that of the arguments
    BOOL = "bool"
    REAL = "real"  # that of the arguments' real parts
    COMPLEX = "complex"  # that of complex numbers of the arguments as parts
    BITS = "bits"  # the call's dtype: the argument's bits as an element of that type
    SECOND = "second"  # ``where``: that of the second and third argument


@dataclass(frozen=True)
class PointwiseFunction:
    """One function of numbers.

    ``numpy`` computes it on arrays of the arguments' type, rounding and NaN as in torch. In C++ it
    is the ``operator``, and without one the function of its name in namespace ``kiln``
    (``kiln/math.h`` and ``kiln/pointwise.h``).
    With ``complex_numbers`` it accepts them too (``Domain.ANY`` does not include them);
    with ``Domain.COMPLEX`` it accepts nothing else.
    ``cost`` is in simple arithmetic operations, for the rules that decide what may be recomputed:
    1 is an addition, a division about 8, a transcendental function about 16.
    """

    name: str
    arity: int
    domain: Domain
    result: Result
    numpy: Callable[..., Any]
    cost: int = 1
    operator: str = ""
    complex_numbers: bool = False

    def takes(self, dtype: DType) -> bool:
        """Whether arguments may have that compute dtype."""
        if dtype.is_complex or self.domain is Domain.COMPLEX:
            return dtype.is_complex and (self.complex_numbers or self.domain is Domain.COMPLEX)
        if self.domain is Domain.FLOAT:
            return dtype.is_float
        if self.domain is Domain.INTEGER:
            return dtype.is_integer
        if self.domain is Domain.BOOL:
            return dtype is DType.BOOL
        return self.domain is Domain.ANY or dtype is not DType.BOOL

    def result_type(self, dtype: DType) -> DType:
        """Return the compute dtype of a call's result, from the type of its (last) argument."""
        if self.result is Result.BOOL:
            return DType.BOOL
        compute_dtype = dtype.compute_dtype
        parts = {Result.REAL: compute_dtype.real, Result.COMPLEX: compute_dtype.complex}
        return parts.get(self.result, compute_dtype)


def _unary(
    name: str,
    numpy: Any,
    cost: int = 16,
    *,
    complex_numbers: bool = False,
) -> PointwiseFunction:
    return PointwiseFunction(
        name,
        1,
        Domain.FLOAT,
        Result.SAME,
        numpy,
        cost,
        complex_numbers=complex_numbers,
    )


def _analytic(name: str, numpy: Any, cost: int = 16) -> PointwiseFunction:
    return _unary(name, numpy, cost, complex_numbers=True)


def _part(name: str, numpy: Any) -> PointwiseFunction:
    return PointwiseFunction(name, 1, Domain.COMPLEX, Result.REAL, numpy)


def _number(
    name: str,
    arity: int,
    numpy: Any,
    cost: int = 1,
    operator: str = "",
    *,
    complex_numbers: bool = False,
) -> PointwiseFunction:
    return PointwiseFunction(
        name,
        arity,
        Domain.NUMBER,
        Result.SAME,
        numpy,
        cost,
        operator,
        complex_numbers=complex_numbers,
    )


def _compare(
    name: str, numpy: Any, operator: str, *, complex_numbers: bool = False
) -> PointwiseFunction:
    return PointwiseFunction(
        name,
        2,
        Domain.ANY,
        Result.BOOL,
        numpy,
        operator=operator,
        complex_numbers=complex_numbers,
    )


def _test(name: str, numpy: Any) -> PointwiseFunction:
    return PointwiseFunction(name, 1, Domain.FLOAT, Result.BOOL, numpy, complex_numbers=True)


def _logic(name: str, arity: int, numpy: Any, operator: str) -> PointwiseFunction:
    return PointwiseFunction(name, arity, Domain.BOOL, Result.SAME, numpy, operator=operator)


def _bits(name: str, arity: int, numpy: Any, operator: str) -> PointwiseFunction:
    return PointwiseFunction(name, arity, Domain.INTEGER, Result.SAME, numpy, operator=operator)


# ``maximum`` and ``minimum`` propagate NaN, as in torch; ``floordiv`` and ``remainder`` follow
# Python (towards minus infinity, the divisor's sign), ``truncdiv`` and ``fmod`` follow C;
# ``round`` is half to even; ``lshift``/``rshift`` are C's on the type (rshift is arithmetic);
# ``philox_word0`` and ``1`` are words for a counter and a key of 64 bits each; ``philox_word`` is
# a selected one of the four words for a counter in two halves and a key.
FUNCTIONS: dict[str, PointwiseFunction] = {
    function.name: function
    for function in (
        _number("add", 2, np.add, operator="+", complex_numbers=True),
        _number("sub", 2, np.subtract, operator="-", complex_numbers=True),
        _number("mul", 2, np.multiply, operator="*", complex_numbers=True),
        _number("maximum", 2, np.maximum),
        _number("minimum", 2, np.minimum),
        _number("neg", 1, np.negative, operator="-", complex_numbers=True),
        PointwiseFunction("abs", 1, Domain.NUMBER, Result.REAL, np.abs, complex_numbers=True),
        PointwiseFunction("angle", 1, Domain.COMPLEX, Result.REAL, np.angle, 32),
        PointwiseFunction("bit_cast", 1, Domain.ANY, Result.BITS, np.array),
        PointwiseFunction("complex", 2, Domain.FLOAT, Result.COMPLEX, numerics.make_complex),
        _part("real", np.real),
        _part("imag", np.imag),
        PointwiseFunction("conj", 1, Domain.COMPLEX, Result.SAME, np.conj),
        _number("sign", 1, numerics.sign, 2),
        _number("floordiv", 2, numerics.floordiv, 16),
        _number("truncdiv", 2, numerics.truncdiv, 12),
        _number("remainder", 2, numerics.remainder, 16),
        _number("fmod", 2, numerics.fmod, 16),
        PointwiseFunction(
            "truediv",
            2,
            Domain.FLOAT,
            Result.SAME,
            np.true_divide,
            8,
            operator="/",
            complex_numbers=True,
        ),
        _number("pow", 2, numerics.power, 32, complex_numbers=True),
        PointwiseFunction("atan2", 2, Domain.FLOAT, Result.SAME, np.arctan2, 32),
        # Rounds to float32 in any type, as torch does to find nearest pixels.
        _unary("float32_of", numerics.round_to_float32, 1),
        PointwiseFunction("copysign", 2, Domain.FLOAT, Result.SAME, np.copysign, 2),
        PointwiseFunction("nextafter", 2, Domain.FLOAT, Result.SAME, np.nextafter, 4),
        PointwiseFunction("gcd", 2, Domain.INTEGER, Result.SAME, np.gcd, 64),
        PointwiseFunction("hypot", 2, Domain.FLOAT, Result.SAME, np.hypot, 16),
        _analytic("reciprocal", np.reciprocal, 8),
        _analytic("sqrt", np.sqrt, 8),
        _analytic("rsqrt", numerics.rsqrt, 8),
        _analytic("exp", np.exp),
        _analytic("exp2", np.exp2),
        _analytic("expm1", np.expm1),
        _analytic("log", np.log),
        _analytic("log2", np.log2),
        _analytic("log10", np.log10),
        _analytic("log1p", np.log1p),
        _analytic("sin", np.sin),
        _analytic("cos", np.cos),
        _analytic("tan", np.tan, 32),
        _analytic("asin", np.arcsin, 32),
        _analytic("acos", np.arccos, 32),
        _analytic("atan", np.arctan, 32),
        _analytic("sinh", np.sinh, 32),
        _analytic("cosh", np.cosh, 32),
        _analytic("asinh", np.arcsinh, 32),
        _analytic("acosh", np.arccosh, 32),
        _analytic("atanh", np.arctanh, 32),
        _analytic("tanh", np.tanh),
        _analytic("sigmoid", numerics.sigmoid),
        _unary("erf", numerics.erf),
        _unary("erfc", numerics.erfc),
        _unary("erfinv", numerics.erfinv, 64),
        _unary("erfcx", numerics.scipy_function("erfcx"), 64),
        _unary("ndtri", numerics.scipy_function("ndtri"), 64),
        _unary("lgamma", numerics.lgamma, 64),
        _unary("digamma", numerics.digamma, 64),
        _unary("i0", numerics.i0, 64),
        _unary("i0e", numerics.scipy_function("i0e"), 64),
        _unary("i1", numerics.i1, 64),
        _unary("i1e", numerics.i1e, 64),
        _unary("floor", np.floor, 1),
        _unary("ceil", np.ceil, 1),
        PointwiseFunction("round", 1, Domain.FLOAT, Result.SAME, np.round),
        _unary("trunc", np.trunc, 1),
        _test("isnan", np.isnan),
        _test("isinf", np.isinf),
        _test("isfinite", np.isfinite),
        _compare("eq", np.equal, "==", complex_numbers=True),
        _compare("ne", np.not_equal, "!=", complex_numbers=True),
        _compare("lt", np.less, "<"),
        _compare("le", np.less_equal, "<="),
        _compare("gt", np.greater, ">"),
        _compare("ge", np.greater_equal, ">="),
        _logic("logical_and", 2, np.logical_and, "&&"),
        _logic("logical_or", 2, np.logical_or, "||"),
        _logic("logical_xor", 2, np.logical_xor, "!="),
        _logic("logical_not", 1, np.logical_not, "!"),
        _bits("bitwise_and", 2, np.bitwise_and, "&"),
        _bits("bitwise_or", 2, np.bitwise_or, "|"),
        _bits("bitwise_xor", 2, np.bitwise_xor, "^"),
        _bits("bitwise_not", 1, np.bitwise_not, "~"),
        PointwiseFunction("philox_word0", 2, Domain.INTEGER, Result.SAME, numerics.philox(0), 64),
        PointwiseFunction("philox_word1", 2, Domain.INTEGER, Result.SAME, numerics.philox(1), 64),
        PointwiseFunction("philox_word", 4, Domain.INTEGER, Result.SAME, numerics.philox_word, 64),
        _bits("lshift", 2, np.left_shift, "<<"),
        _bits("rshift", 2, np.right_shift, ">>"),
        PointwiseFunction(
            "where",
            3,
            Domain.ANY,
            Result.SECOND,
            np.where,
            operator="?:",
            complex_numbers=True,
        ),
    )
}
