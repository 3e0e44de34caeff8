"""Which calls of a kernel may be fast: those whose every path to memory is smooth and ends at an
element of f16 or bf16, whose rounding is far coarser than a fast function's error
(docs/math.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Cast, Masked, Value, children

_SHORT_TYPES = (DType.F16, DType.BF16)

# Smooth functions: a small error of an argument is a small error of the result.
_SMOOTH_OPS = frozenset(
    (
        *("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "truediv", "reciprocal"),
        *("sqrt", "rsqrt", "hypot", "pow", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sigmoid", "tanh", "erf", "erfc", "atan", "asinh", "where"),
    )
)


class Precision(IntEnum):
    """How precise a value must be: the strictest of its uses counts."""

    EXACT = 0  # it is compared, counted, rounded to whole numbers, used as an index
    FULL = 1  # it is stored in its compute type
    SHORT = 2  # it is rounded to f16 or bf16

    def after_cast(self, dtype: DType) -> Precision:
        """Return the precision of a value that is rounded to ``dtype`` on the way to this use."""
        return Precision.SHORT if self and dtype in _SHORT_TYPES else self


@dataclass(frozen=True)
class Root:
    """A tree, and the precision of its use."""

    value: Value
    precision: Precision


def store_root(value: Value, dtype: DType) -> Root:
    """Return a tree whose value becomes an element of ``dtype``."""
    return Root(value, Precision.FULL.after_cast(dtype) if dtype.is_inexact else Precision.EXACT)


def precisions(roots: Iterable[Root]) -> Iterator[tuple[Value, Precision]]:
    """Yield every part of the trees with its precision, the strictest of all uses."""
    strictest: dict[int, tuple[Value, Precision]] = {}
    pending = [(root.value, root.precision) for root in roots]
    while pending:
        value, precision = pending.pop()
        visited = strictest.get(id(value))
        if visited is not None and visited[1] <= precision:
            continue
        strictest[id(value)] = value, precision
        pending.extend(_child_precisions(value, precision))
    yield from strictest.values()


def _child_precisions(value: Value, precision: Precision) -> Iterator[tuple[Value, Precision]]:
    exact = Precision.EXACT
    if isinstance(value, Cast):
        is_float_cast = value.dtype.is_float and value.value.dtype.is_float
        yield value.value, precision.after_cast(value.dtype) if is_float_cast else exact
        return
    for position, child in enumerate(children(value)):
        is_smooth = isinstance(value, Masked) and position > 0
        if isinstance(value, Call):
            is_smooth = value.op in _SMOOTH_OPS and not (value.op == "where" and position == 0)
        yield child, precision if is_smooth else exact


def fast_calls(roots: Iterable[Root]) -> Mapping[bool, list[Call]]:
    """Return the f32 calls that may be fast, and those that may not."""
    calls: dict[bool, list[Call]] = {True: [], False: []}
    for value, precision in precisions(roots):
        if isinstance(value, Call) and value.dtype is DType.F32:
            calls[precision is Precision.SHORT].append(value)
    return calls
