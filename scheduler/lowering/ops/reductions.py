"""Rows of reductions."""

from __future__ import annotations

import numpy as np

from scheduler.ir.operations import ReductionKind
from scheduler.ir.ops import op
from scheduler.ir.reference import reductions as ref
from scheduler.lowering import reductions as rules

VARIANCE = (
    "self, unbiased=True; dim: self, dim, unbiased=True, keepdim=False; "
    "correction: self, dim=None, *, correction=None, keepdim=False"
)

ROWS = (
    op(
        "aten.sum",
        "self, *, dtype=None; dim_IntList: self, dim, keepdim=False, *, dtype=None",
        rules.sum_op,
        ref.sum_op,
    ),
    op(
        "aten.mean",
        "self, *, dtype=None; dim: self, dim, keepdim=False, *, dtype=None",
        rules.mean_op,
        ref.mean,
    ),
    op(
        "aten.prod",
        "self, *, dtype=None; dim_int: self, dim, keepdim=False, *, dtype=None",
        rules.prod,
        ref.prod,
    ),
    op("aten.amax", "self, dim=(), keepdim=False", rules.max_or_min(ReductionKind.MAX), ref.amax),
    op("aten.amin", "self, dim=(), keepdim=False", rules.max_or_min(ReductionKind.MIN), ref.amin),
    op(
        "aten.max",
        "self; other: self, other; dim: self, dim, keepdim=False",
        rules.max_or_min(ReductionKind.MAX),
        ref.max_or_min(np.max, np.argmax, np.maximum),
    ),
    op(
        "aten.min",
        "self; other: self, other; dim: self, dim, keepdim=False",
        rules.max_or_min(ReductionKind.MIN),
        ref.max_or_min(np.min, np.argmin, np.minimum),
    ),
    op(
        "aten.any",
        "self; dim: self, dim, keepdim=False; dims: self, dim=None, keepdim=False",
        rules.any_or_all(ReductionKind.ANY),
        ref.any_op,
    ),
    op(
        "aten.all",
        "self; dim: self, dim, keepdim=False; dims: self, dim=None, keepdim=False",
        rules.any_or_all(ReductionKind.ALL),
        ref.all_op,
    ),
    op(
        "aten.argmax",
        "self, dim=None, keepdim=False",
        rules.index_rule(ReductionKind.ARGMAX),
        ref.arg_reduce(np.argmax),
    ),
    op(
        "aten.argmin",
        "self, dim=None, keepdim=False",
        rules.index_rule(ReductionKind.ARGMIN),
        ref.arg_reduce(np.argmin),
    ),
    op("aten.var", VARIANCE, rules.variance(root=False, with_mean=False), ref.variance),
    op("aten.std", VARIANCE, rules.variance(root=True, with_mean=False), ref.std),
    op("aten.var_mean", VARIANCE, rules.variance(root=False, with_mean=True), ref.var_mean),
    op("aten.std_mean", VARIANCE, rules.variance(root=True, with_mean=True), ref.std_mean),
)
