"""Rows of cumulative ops, and of integrals by the trapezoidal rule."""

from __future__ import annotations

import operator

import numpy as np

from scheduler.ir.operations import ReductionKind
from scheduler.ir.ops import op
from scheduler.ir.reference import reductions as sums
from scheduler.ir.reference import scans as ref
from scheduler.lowering import reductions
from scheduler.lowering import scans as rules

TRAPEZOID = "x: y, x, *, dim=-1; dx: y, *, dx=1, dim=-1"

ROWS = (
    op(
        "aten.cumsum",
        "self, dim, *, dtype=None",
        reductions.scan(ReductionKind.SUM),
        sums.scan(np.cumsum),
    ),
    op(
        "aten.cumprod",
        "self, dim, *, dtype=None",
        reductions.scan(ReductionKind.PROD),
        sums.scan(np.cumprod),
    ),
    op(
        "aten.cummax",
        "self, dim",
        rules.cummax_or_cummin(ReductionKind.MAX),
        ref.cummax_or_cummin(np.maximum, operator.ge),
    ),
    op(
        "aten.cummin",
        "self, dim",
        rules.cummax_or_cummin(ReductionKind.MIN),
        ref.cummax_or_cummin(np.minimum, operator.le),
    ),
    op("aten.logcumsumexp", "self, dim", rules.logcumsumexp, ref.logcumsumexp),
    op("aten._logcumsumexp", "self, dim", rules.logcumsumexp, ref.logcumsumexp),
    op("aten.trapezoid", TRAPEZOID, rules.trapezoid, ref.trapezoid),
    op("aten.trapz", TRAPEZOID, rules.trapezoid, ref.trapezoid),
    op(
        "aten.cumulative_trapezoid", TRAPEZOID, rules.cumulative_trapezoid, ref.cumulative_trapezoid
    ),
)
