"""Rows of arithmetic on sizes: aten's, and Python's own functions as torch.export names them.

An integer that is an expression of the model's sizes needs no operation: the graph has the
expression. Other numbers are trees that their users read.
"""

from __future__ import annotations

import math
import operator

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import creation as ref
from scheduler.lowering import pointwise, scalars

#: Symbolic integers: the graph has their expressions.
SIZE = NoKernel("its result is a size, not a tensor")

ROWS = (
    op("aten.sym_size", "int: self, dim", SIZE, ref.sym_size),
    op("aten.sym_stride", "int: self, dim", SIZE, ref.stride),
    op("aten.sym_numel", "self", SIZE, ref.sym_numel),
    op("aten.sym_storage_offset", "self", SIZE, ref.storage_offset),
    op(
        "aten.sym_is_contiguous",
        "self, memory_format=None",
        scalars.is_contiguous,
        ref.is_contiguous,
    ),
    op("aten.item", "self", scalars.item, ref.item),
    op("aten._local_scalar_dense", "self", scalars.item, ref.item),
    op("aten.sym_constrain_range", "size, *, min=None, max=None", pointwise.no_op, ref.no_op),
    op(
        "aten.sym_constrain_range_for_size",
        "size, *, min=None, max=None",
        pointwise.no_op,
        ref.no_op,
    ),
    op("_operator.add", "a, b", scalars.arithmetic("add"), ref.binary_function(operator.add)),
    op("_operator.sub", "a, b", scalars.arithmetic("sub"), ref.binary_function(operator.sub)),
    op("_operator.mul", "a, b", scalars.arithmetic("mul"), ref.binary_function(operator.mul)),
    op(
        "_operator.floordiv",
        "a, b",
        scalars.arithmetic("floordiv"),
        ref.binary_function(operator.floordiv),
    ),
    op(
        "_operator.truediv",
        "a, b",
        scalars.float_function("truediv"),
        ref.binary_function(operator.truediv),
    ),
    op("_operator.mod", "a, b", scalars.arithmetic("remainder"), ref.binary_function(operator.mod)),
    op("_operator.pow", "a, b", scalars.arithmetic("pow"), ref.binary_function(operator.pow)),
    op("_operator.eq", "a, b", scalars.arithmetic("eq"), ref.binary_function(operator.eq)),
    op("_operator.ne", "a, b", scalars.arithmetic("ne"), ref.binary_function(operator.ne)),
    op("_operator.lt", "a, b", scalars.arithmetic("lt"), ref.binary_function(operator.lt)),
    op("_operator.le", "a, b", scalars.arithmetic("le"), ref.binary_function(operator.le)),
    op("_operator.gt", "a, b", scalars.arithmetic("gt"), ref.binary_function(operator.gt)),
    op("_operator.ge", "a, b", scalars.arithmetic("ge"), ref.binary_function(operator.ge)),
    op("_operator.and_", "a, b", scalars.logical("and"), ref.binary_function(operator.and_)),
    op("_operator.or_", "a, b", scalars.logical("or"), ref.binary_function(operator.or_)),
    op(
        "_operator.lshift",
        "a, b",
        scalars.arithmetic("lshift"),
        ref.binary_function(operator.lshift),
    ),
    op(
        "_operator.rshift",
        "a, b",
        scalars.arithmetic("rshift"),
        ref.binary_function(operator.rshift),
    ),
    op("torch.sym_max", "a, b", scalars.arithmetic("maximum"), ref.binary_function(max)),
    op("torch.sym_min", "a, b", scalars.arithmetic("minimum"), ref.binary_function(min)),
    op("torch.sym_ite", "b, t, f", scalars.select, ref.sym_ite),
    op("_operator.neg", "a", scalars.negative, ref.unary_function(operator.neg)),
    op("_operator.pos", "a", scalars.identity, ref.unary_function(operator.pos)),
    op("torch.sym_float", "a", scalars.to_float, ref.unary_function(float)),
    op("torch.sym_int", "a", scalars.to_integer("trunc"), ref.unary_function(int)),
    op("torch.sym_not", "a", scalars.logical_not, ref.unary_function(operator.not_)),
    op("torch.sym_sqrt", "a", scalars.float_function("sqrt"), ref.unary_function(math.sqrt)),
    op("torch._sym_sqrt", "a", scalars.float_function("sqrt"), ref.unary_function(math.sqrt)),
    op("math.trunc", "x", scalars.to_integer("trunc"), ref.unary_function(math.trunc)),
    op("math.floor", "x", scalars.to_integer("floor"), ref.unary_function(math.floor)),
    op("math.ceil", "x", scalars.to_integer("ceil"), ref.unary_function(math.ceil)),
    op("builtins.round", "number, ndigits=None", scalars.round_op, ref.round_number),
)
