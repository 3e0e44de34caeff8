"""Rows of arithmetic on sizes: aten's, and Python's own functions as torch.export names them."""

from __future__ import annotations

import math
import operator

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import creation as ref
from scheduler.lowering import pointwise

#: Symbolic integers: the graph has their expressions.
SIZE = NoKernel("its result is a size, not a tensor")

ROWS = (
    op("aten.sym_size", "int: self, dim", SIZE, ref.sym_size),
    op("aten.sym_stride", "int: self, dim", SIZE, ref.stride),
    op("aten.sym_numel", "self", SIZE, ref.sym_numel),
    op("aten.sym_constrain_range", "size, *, min=None, max=None", pointwise.nothing, ref.nothing),
    op(
        "aten.sym_constrain_range_for_size",
        "size, *, min=None, max=None",
        pointwise.nothing,
        ref.nothing,
    ),
    op("_operator.add", "a, b", SIZE, ref.two(operator.add)),
    op("_operator.sub", "a, b", SIZE, ref.two(operator.sub)),
    op("_operator.mul", "a, b", SIZE, ref.two(operator.mul)),
    op("_operator.floordiv", "a, b", SIZE, ref.two(operator.floordiv)),
    op("_operator.truediv", "a, b", SIZE, ref.two(operator.truediv)),
    op("_operator.mod", "a, b", SIZE, ref.two(operator.mod)),
    op("_operator.pow", "a, b", SIZE, ref.two(operator.pow)),
    op("_operator.eq", "a, b", SIZE, ref.two(operator.eq)),
    op("_operator.ne", "a, b", SIZE, ref.two(operator.ne)),
    op("_operator.lt", "a, b", SIZE, ref.two(operator.lt)),
    op("_operator.le", "a, b", SIZE, ref.two(operator.le)),
    op("_operator.gt", "a, b", SIZE, ref.two(operator.gt)),
    op("_operator.ge", "a, b", SIZE, ref.two(operator.ge)),
    op("_operator.and_", "a, b", SIZE, ref.two(operator.and_)),
    op("_operator.or_", "a, b", SIZE, ref.two(operator.or_)),
    op("torch.sym_max", "a, b", SIZE, ref.two(max)),
    op("torch.sym_min", "a, b", SIZE, ref.two(min)),
    op("_operator.neg", "a", SIZE, ref.one(operator.neg)),
    op("_operator.pos", "a", SIZE, ref.one(operator.pos)),
    op("torch.sym_float", "a", SIZE, ref.one(float)),
    op("torch.sym_int", "a", SIZE, ref.one(int)),
    op("torch.sym_not", "a", SIZE, ref.one(operator.not_)),
    op("torch.sym_sqrt", "a", SIZE, ref.one(math.sqrt)),
    op("math.trunc", "x", SIZE, ref.one(math.trunc)),
    op("math.floor", "x", SIZE, ref.one(math.floor)),
    op("math.ceil", "x", SIZE, ref.one(math.ceil)),
    op("torch._sym_sqrt", "a", SIZE, ref.one(math.sqrt)),
    op("builtins.round", "number, ndigits=None", SIZE, ref.rounded_number),
)
