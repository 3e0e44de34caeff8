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
    forms,
    overload_of,
)
from scheduler.lowering.ops import (
    activations,
    arithmetic,
    attention,
    complex_numbers,
    conversion,
    convolution,
    counting,
    creation,
    fourier,
    functions,
    gradients,
    grouped,
    higher_order,
    indexing,
    linalg,
    logic,
    losses,
    matmul,
    names,
    normalization,
    parts,
    pooling,
    quantized,
    random,
    rearranging,
    recurrent,
    reductions,
    resampling,
    sampling,
    scans,
    sizes,
    sorting,
    special,
    statistics,
    sums,
    views,
    writes,
)

_FIRST_NAMES: tuple[Op, ...] = (
    *matmul.ROWS,
    *grouped.ROWS,
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
    *sampling.ROWS,
    *arithmetic.ROWS,
    *functions.ROWS,
    *special.ROWS,
    *logic.ROWS,
    *activations.ROWS,
    *gradients.ROWS,
    *indexing.ROWS,
    *writes.ROWS,
    *parts.ROWS,
    *counting.ROWS,
    *views.ROWS,
    *rearranging.ROWS,
    *creation.ROWS,
    *random.ROWS,
    *conversion.ROWS,
    *sizes.ROWS,
    *higher_order.ROWS,
)
ROWS: tuple[Op, ...] = (*_FIRST_NAMES, *names.other_names(_FIRST_NAMES))
_ROWS: Mapping[str, Op] = MappingProxyType({t: row for row in ROWS for t in row.targets})


UNKNOWN = "unknown op"  # why there is no kernel, where no row has it


def find(target: str) -> Overload:
    """The op that a node's target names. Raises ``UnsupportedOpError`` where no row has it."""
    form = next((form for form in forms(target) if form in _ROWS), "")
    if not form:
        raise UnsupportedOpError(target, UNKNOWN)
    return _overload(target, form)


def known(target: str) -> Overload | None:
    """The same, or None where no row has it."""
    try:
        return find(target)
    except UnsupportedOpError:
        return None


@cache
def named_reasons() -> frozenset[str]:
    """Why ops are left to the reference, as their rows say: a use of another op may be so too."""
    return frozenset(row.lowering.reason for row in ROWS if isinstance(row.lowering, NoKernel))


@cache  # of known targets alone: as many as there are
def _overload(target: str, form: str) -> Overload:
    return overload_of(_ROWS[form], target, form)
