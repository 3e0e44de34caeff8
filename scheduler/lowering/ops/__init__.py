"""The op table: one row an op, with all that is its own.

A row names the op, its schemas, the rule that lowers it (or why no kernel is made), and its
float64 reference. The pointwise functions that rules call by name have rows in
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

_FIRST_NAMES: tuple[Op, ...] = (
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
ROWS: tuple[Op, ...] = (*_FIRST_NAMES, *aliases.alias_rows(_FIRST_NAMES))
_ROWS: Mapping[str, Op] = MappingProxyType({t: row for row in ROWS for t in row.targets})


UNKNOWN = "unknown op"  # why there is no kernel, where no row has it


def resolve_op(target: str) -> Overload:
    """The op that a node's target names. Raises ``UnsupportedOpError`` where no row has it."""
    form = next((form for form in functional_forms(target) if form in _ROWS), "")
    if not form:
        raise UnsupportedOpError(target, UNKNOWN)
    return _overload(target, form)


def lookup_op(target: str) -> Overload | None:
    """The same, or None where no row has it."""
    try:
        return resolve_op(target)
    except UnsupportedOpError:
        return None


@cache
def named_reasons() -> frozenset[str]:
    """Why ops are left to the reference, as their rows say: a use of another op may be so too."""
    return frozenset(row.lowering.reason for row in ROWS if isinstance(row.lowering, NoKernel))


@cache  # of known targets alone: as many as there are
def _overload(target: str, form: str) -> Overload:
    return make_overload(_ROWS[form], target, form)
