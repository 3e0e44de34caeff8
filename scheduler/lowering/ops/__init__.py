"""The op table: one row per op, with everything specific to it.

A row names the op, its schemas, the rule that lowers it (or the reason why it has no kernel), and
its float64 reference. The pointwise functions that rules call by name have rows in
``ir/pointwise.py``: their NumPy form, their C++ form, their cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from scheduler.ir.ops import (
    NoKernel,
    Op,
    Overload,
    UnsupportedOpError,
    functional_forms,
    make_overload,
)
from scheduler.lowering.ops import (
    activations,
    aliases,
    arithmetic,
    attention,
    backward,
    complex_numbers,
    conversion,
    convolution,
    creation,
    data_movement,
    embedding_bag,
    fourier,
    functions,
    grid_sampler,
    grouped_mm,
    higher_order,
    index_put,
    indexing,
    linalg,
    logic,
    losses,
    matmul,
    normalization,
    pooling,
    quantized,
    random,
    recurrent,
    reductions,
    resampling,
    scans,
    sizes,
    slice_scatter,
    sorting,
    special,
    statistics,
    sums,
    views,
)

_ROWS_WITHOUT_ALIASES: tuple[Op, ...] = (
    *matmul.ROWS,
    *grouped_mm.ROWS,
    *linalg.ROWS,
    *attention.ROWS,
    *convolution.ROWS,
    *quantized.ROWS,
    *sums.ROWS,
    *complex_numbers.ROWS,
    *fourier.ROWS,
    *normalization.ROWS,
    *losses.ROWS,
    *reductions.ROWS,
    *scans.ROWS,
    *statistics.ROWS,
    *sorting.ROWS,
    *pooling.ROWS,
    *resampling.ROWS,
    *recurrent.ROWS,
    *grid_sampler.ROWS,
    *arithmetic.ROWS,
    *functions.ROWS,
    *special.ROWS,
    *logic.ROWS,
    *activations.ROWS,
    *backward.ROWS,
    *indexing.ROWS,
    *index_put.ROWS,
    *slice_scatter.ROWS,
    *embedding_bag.ROWS,
    *views.ROWS,
    *data_movement.ROWS,
    *creation.ROWS,
    *random.ROWS,
    *conversion.ROWS,
    *sizes.ROWS,
    *higher_order.ROWS,
)
ROWS: tuple[Op, ...] = (*_ROWS_WITHOUT_ALIASES, *aliases.alias_rows(_ROWS_WITHOUT_ALIASES))
_ROW_OF_TARGET: Mapping[str, Op] = MappingProxyType({t: row for row in ROWS for t in row.targets})


UNKNOWN = "unknown op"  # the reason if no row has the op


def resolve_op(target: str) -> Overload:
    """The op that a node's target names. Raises ``UnsupportedOpError`` if no row has it."""
    form = next((form for form in functional_forms(target) if form in _ROW_OF_TARGET), "")
    if not form:
        raise UnsupportedOpError(target, UNKNOWN)
    return _overload(target, form)


def lookup_op(target: str) -> Overload | None:
    """``resolve_op``, or None if no row has the op."""
    try:
        return resolve_op(target)
    except UnsupportedOpError:
        return None


@cache
def named_reasons() -> frozenset[str]:
    """The reasons that rows give for leaving ops to the reference; uses of other ops may share
    them."""
    return frozenset(row.lowering.reason for row in ROWS if isinstance(row.lowering, NoKernel))


@cache  # only known targets, so the cache is bounded
def _overload(target: str, form: str) -> Overload:
    return make_overload(_ROW_OF_TARGET[form], target, form)
