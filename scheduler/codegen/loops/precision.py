"""How the values of a loop nest are used, including those that one statement reads from another."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.precision import Precision, Root, precisions, store_root
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Accumulator, Load

_SMOOTH_KINDS = (
    *(ReductionKind.SUM, ReductionKind.PROD, ReductionKind.MAX, ReductionKind.MIN),
    ReductionKind.LOGSUMEXP,
)


def precision_roots(nest: LoopNest) -> tuple[Root, ...]:
    """Return every tree of the nest. A value that stays in registers is used as its readers use
    it."""
    uses: dict[str, Precision] = {}
    roots: list[Root] = []
    for statement in reversed(nest.statements):
        for root in _statement_roots(statement, nest, uses):
            roots.append(root)
            for value, precision in precisions([root]):
                name = value.buffer if isinstance(value, Load) else None
                name = value.name if isinstance(value, Accumulator) else name
                if name is not None:
                    uses[name] = min(precision, uses.get(name, precision))
    return tuple(roots)


def _statement_roots(
    statement: Statement, nest: LoopNest, uses: dict[str, Precision]
) -> Iterator[Root]:
    """Return the trees of a statement, from the later uses of its result."""
    buffer = statement.store.buffer
    dtype = nest.buffer(buffer).dtype
    precision = uses.get(buffer, Precision.SHORT).after_cast(dtype)
    if buffer in nest.outputs or not dtype.is_inexact:
        precision = min(precision, store_root(statement.store.value, dtype).precision)
    if statement.kind is None:
        yield Root(statement.value, precision)
        return
    store_value = Root(statement.store.value, precision)
    yield store_value
    result_precisions = [p for v, p in precisions([store_value]) if isinstance(v, Accumulator)]
    value_precision = min(
        [*result_precisions, uses.get(statement.name, Precision.SHORT)], default=precision
    )
    is_smooth = statement.kind in _SMOOTH_KINDS and statement.value.dtype.is_float
    yield Root(statement.value, value_precision if is_smooth else Precision.EXACT)
