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
    op("aten.sym_constrain_range", "size, *, min=None, max=None", pointwise.no_op, ref.no_op),
    op(
        "aten.sym_constrain_range_for_size",
        "size, *, min=None, max=None",
        pointwise.no_op,
        ref.no_op,
    ),
    op("_operator.add", "a, b", SIZE, ref.binary_function(operator.add)),
    op("_operator.sub", "a, b", SIZE, ref.binary_function(operator.sub)),
    op("_operator.mul", "a, b", SIZE, ref.binary_function(operator.mul)),
    op("_operator.floordiv", "a, b", SIZE, ref.binary_function(operator.floordiv)),
    op("_operator.truediv", "a, b", SIZE, ref.binary_function(operator.truediv)),
    op("_operator.mod", "a, b", SIZE, ref.binary_function(operator.mod)),
    op("_operator.pow", "a, b", SIZE, ref.binary_function(operator.pow)),
    op("_operator.eq", "a, b", SIZE, ref.binary_function(operator.eq)),
    op("_operator.ne", "a, b", SIZE, ref.binary_function(operator.ne)),
    op("_operator.lt", "a, b", SIZE, ref.binary_function(operator.lt)),
    op("_operator.le", "a, b", SIZE, ref.binary_function(operator.le)),
    op("_operator.gt", "a, b", SIZE, ref.binary_function(operator.gt)),
    op("_operator.ge", "a, b", SIZE, ref.binary_function(operator.ge)),
    op("_operator.and_", "a, b", SIZE, ref.binary_function(operator.and_)),
    op("_operator.or_", "a, b", SIZE, ref.binary_function(operator.or_)),
    op("torch.sym_max", "a, b", SIZE, ref.binary_function(max)),
    op("torch.sym_min", "a, b", SIZE, ref.binary_function(min)),
    op("_operator.neg", "a", SIZE, ref.unary_function(operator.neg)),
    op("_operator.pos", "a", SIZE, ref.unary_function(operator.pos)),
    op("torch.sym_float", "a", SIZE, ref.unary_function(float)),
    op("torch.sym_int", "a", SIZE, ref.unary_function(int)),
    op("torch.sym_not", "a", SIZE, ref.unary_function(operator.not_)),
    op("torch.sym_sqrt", "a", SIZE, ref.unary_function(math.sqrt)),
    op("math.trunc", "x", SIZE, ref.unary_function(math.trunc)),
    op("math.floor", "x", SIZE, ref.unary_function(math.floor)),
    op("math.ceil", "x", SIZE, ref.unary_function(math.ceil)),
    op("torch._sym_sqrt", "a", SIZE, ref.unary_function(math.sqrt)),
    op("builtins.round", "number, ndigits=None", SIZE, ref.rounded_number),
)
