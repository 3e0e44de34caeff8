"""Rows of arithmetic on sizes: aten's, and Python's own functions as torch.export names them.

Integers that an expression of the model's sizes is have no operation: the graph says it. The
other numbers are trees that their users read.
"""

from __future__ import annotations

import math
import operator

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import creation as ref
from scheduler.lowering import numbers, pointwise

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
        numbers.is_contiguous,
        ref.is_contiguous,
    ),
    op("aten.item", "self", numbers.item, ref.item),
    op("aten._local_scalar_dense", "self", numbers.item, ref.item),
    op("aten.sym_constrain_range", "size, *, min=None, max=None", pointwise.no_op, ref.no_op),
    op(
        "aten.sym_constrain_range_for_size",
        "size, *, min=None, max=None",
        pointwise.no_op,
        ref.no_op,
    ),
    op("_operator.add", "a, b", numbers.arithmetic("add"), ref.binary_function(operator.add)),
    op("_operator.sub", "a, b", numbers.arithmetic("sub"), ref.binary_function(operator.sub)),
    op("_operator.mul", "a, b", numbers.arithmetic("mul"), ref.binary_function(operator.mul)),
    op(
        "_operator.floordiv",
        "a, b",
        numbers.arithmetic("floordiv"),
        ref.binary_function(operator.floordiv),
    ),
    op(
        "_operator.truediv",
        "a, b",
        numbers.of_floats("truediv"),
        ref.binary_function(operator.truediv),
    ),
    op("_operator.mod", "a, b", numbers.arithmetic("remainder"), ref.binary_function(operator.mod)),
    op("_operator.pow", "a, b", numbers.arithmetic("pow"), ref.binary_function(operator.pow)),
    op("_operator.eq", "a, b", numbers.arithmetic("eq"), ref.binary_function(operator.eq)),
    op("_operator.ne", "a, b", numbers.arithmetic("ne"), ref.binary_function(operator.ne)),
    op("_operator.lt", "a, b", numbers.arithmetic("lt"), ref.binary_function(operator.lt)),
    op("_operator.le", "a, b", numbers.arithmetic("le"), ref.binary_function(operator.le)),
    op("_operator.gt", "a, b", numbers.arithmetic("gt"), ref.binary_function(operator.gt)),
    op("_operator.ge", "a, b", numbers.arithmetic("ge"), ref.binary_function(operator.ge)),
    op("_operator.and_", "a, b", numbers.logical("and"), ref.binary_function(operator.and_)),
    op("_operator.or_", "a, b", numbers.logical("or"), ref.binary_function(operator.or_)),
    op(
        "_operator.lshift",
        "a, b",
        numbers.arithmetic("lshift"),
        ref.binary_function(operator.lshift),
    ),
    op(
        "_operator.rshift",
        "a, b",
        numbers.arithmetic("rshift"),
        ref.binary_function(operator.rshift),
    ),
    op("torch.sym_max", "a, b", numbers.arithmetic("maximum"), ref.binary_function(max)),
    op("torch.sym_min", "a, b", numbers.arithmetic("minimum"), ref.binary_function(min)),
    op("torch.sym_ite", "b, t, f", numbers.chosen, ref.sym_ite),
    op("_operator.neg", "a", numbers.negative, ref.unary_function(operator.neg)),
    op("_operator.pos", "a", numbers.same, ref.unary_function(operator.pos)),
    op("torch.sym_float", "a", numbers.as_float, ref.unary_function(float)),
    op("torch.sym_int", "a", numbers.integer("trunc"), ref.unary_function(int)),
    op("torch.sym_not", "a", numbers.negated, ref.unary_function(operator.not_)),
    op("torch.sym_sqrt", "a", numbers.of_floats("sqrt"), ref.unary_function(math.sqrt)),
    op("torch._sym_sqrt", "a", numbers.of_floats("sqrt"), ref.unary_function(math.sqrt)),
    op("math.trunc", "x", numbers.integer("trunc"), ref.unary_function(math.trunc)),
    op("math.floor", "x", numbers.integer("floor"), ref.unary_function(math.floor)),
    op("math.ceil", "x", numbers.integer("ceil"), ref.unary_function(math.ceil)),
    op("builtins.round", "number, ndigits=None", numbers.rounded, ref.rounded_number),
)
