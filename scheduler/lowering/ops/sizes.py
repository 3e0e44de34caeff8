"""Rows of arithmetic on sizes: aten's, and Python's own functions as torch.export names them.

An integer that is an expression of the model's sizes needs no operation: the graph has the
expression. Other numbers are trees that their users read.
"""

from __future__ import annotations

import math
import operator

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import creation as ref
from scheduler.lowering import pointwise
from scheduler.lowering import scalars as rules

#: Symbolic integers: the graph has their expressions.
SIZE = NoKernel("its result is a size, not a tensor")

ROWS = (
    op("aten.sym_size", "int: self, dim", SIZE, ref.sym_size),
    op("aten.sym_stride", "int: self, dim", SIZE, ref.stride),
    op("aten.sym_numel", "self", SIZE, ref.sym_numel),
    op("aten.sym_storage_offset", "self", SIZE, ref.storage_offset),
    op(
        "aten.sym_is_contiguous", "self, memory_format=None", rules.is_contiguous, ref.is_contiguous
    ),
    op("aten.item", "self", rules.item, ref.item),
    op("aten._local_scalar_dense", "self", rules.item, ref.item),
    op("aten.sym_constrain_range", "size, *, min=None, max=None", pointwise.no_op, ref.no_op),
    op(
        "aten.sym_constrain_range_for_size",
        "size, *, min=None, max=None",
        pointwise.no_op,
        ref.no_op,
    ),
    op("_operator.add", "a, b", rules.arithmetic("add"), ref.binary_function(operator.add)),
    op("_operator.sub", "a, b", rules.arithmetic("sub"), ref.binary_function(operator.sub)),
    op("_operator.mul", "a, b", rules.arithmetic("mul"), ref.binary_function(operator.mul)),
    op(
        "_operator.floordiv",
        "a, b",
        rules.arithmetic("floordiv"),
        ref.binary_function(operator.floordiv),
    ),
    op(
        "_operator.truediv",
        "a, b",
        rules.float_function("truediv"),
        ref.binary_function(operator.truediv),
    ),
    op("_operator.mod", "a, b", rules.arithmetic("remainder"), ref.binary_function(operator.mod)),
    op("_operator.pow", "a, b", rules.arithmetic("pow"), ref.binary_function(operator.pow)),
    op("_operator.eq", "a, b", rules.arithmetic("eq"), ref.binary_function(operator.eq)),
    op("_operator.ne", "a, b", rules.arithmetic("ne"), ref.binary_function(operator.ne)),
    op("_operator.lt", "a, b", rules.arithmetic("lt"), ref.binary_function(operator.lt)),
    op("_operator.le", "a, b", rules.arithmetic("le"), ref.binary_function(operator.le)),
    op("_operator.gt", "a, b", rules.arithmetic("gt"), ref.binary_function(operator.gt)),
    op("_operator.ge", "a, b", rules.arithmetic("ge"), ref.binary_function(operator.ge)),
    op("_operator.and_", "a, b", rules.logical("and"), ref.binary_function(operator.and_)),
    op("_operator.or_", "a, b", rules.logical("or"), ref.binary_function(operator.or_)),
    op(
        "_operator.lshift", "a, b", rules.arithmetic("lshift"), ref.binary_function(operator.lshift)
    ),
    op(
        "_operator.rshift", "a, b", rules.arithmetic("rshift"), ref.binary_function(operator.rshift)
    ),
    op("torch.sym_max", "a, b", rules.arithmetic("maximum"), ref.binary_function(max)),
    op("torch.sym_min", "a, b", rules.arithmetic("minimum"), ref.binary_function(min)),
    op("torch.sym_ite", "b, t, f", rules.select, ref.sym_ite),
    op("_operator.neg", "a", rules.negative, ref.unary_function(operator.neg)),
    op("_operator.pos", "a", rules.identity, ref.unary_function(operator.pos)),
    op("torch.sym_float", "a", rules.to_float, ref.unary_function(float)),
    op("torch.sym_int", "a", rules.to_integer("trunc"), ref.unary_function(int)),
    op("torch.sym_not", "a", rules.logical_not, ref.unary_function(operator.not_)),
    op("torch.sym_sqrt", "a", rules.float_function("sqrt"), ref.unary_function(math.sqrt)),
    op("torch._sym_sqrt", "a", rules.float_function("sqrt"), ref.unary_function(math.sqrt)),
    op("math.trunc", "x", rules.to_integer("trunc"), ref.unary_function(math.trunc)),
    op("math.floor", "x", rules.to_integer("floor"), ref.unary_function(math.floor)),
    op("math.ceil", "x", rules.to_integer("ceil"), ref.unary_function(math.ceil)),
    op("builtins.round", "number, ndigits=None", rules.round_op, ref.round_number),
)
