"""Inversion of an access: loop variables in terms of the index of the accessed element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.functions import FloorDiv, Mod, variable
from scheduler.ir.index.ranges import Ranges, loop_ranges
from scheduler.ir.index.simplify import product, simplify
from scheduler.ir.index.substitute import substitute_expr
from scheduler.ir.operations import Axis

Index: TypeAlias = tuple[Expr, ...]

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)


@lru_cache(maxsize=4096)
def invert_index(index: Index, size: Index, axes: tuple[Axis, ...]) -> Index | None:
    """Return the loop variables at which ``index`` accesses the element (d0, d1, …) of a buffer.

    One expression in d0, d1, … for each of ``axes``; None unless the loops visit each element
    of a buffer of this ``size`` exactly once. The row-major offset of the index must be a
    mixed-radix number of the loop variables, in any order; or the dimensions must be the digits of
    such numbers.
    """
    dims = tuple(variable("d", k) for k in range(len(size)))
    direct = _invert_direct(index, size, axes, dims)
    if direct is not None:
        return direct
    if product(size) == 0:
        return None  # there are no elements
    flat = simplify(_row_major(index, size), loop_ranges(axes))
    form = affine(flat, {axis.var for axis in axes})
    if form is None or form.rest != 0:
        return _invert_digits(index, size, axes, dims)
    steps = [form.at(axis.var) for axis in axes]
    number = _row_major(dims, size)
    variables: dict[int, Expr] = {}
    step: Expr = _ONE
    while len(variables) < len(axes):
        position = next((j for j, c in enumerate(steps) if j not in variables and c == step), None)
        if position is None:
            return None
        part = FloorDiv(number, step)
        step = simplify(step * axes[position].size)
        variables[position] = part if step == product(size) else Mod(part, axes[position].size)
    return tuple(variables[j] for j in range(len(axes))) if step == product(size) else None


def _row_major(index: Sequence[Expr], size: Index) -> Expr:
    number: Expr = _ZERO
    for i, extent in zip(index, size, strict=True):
        number = number * extent + i
    return number


def _invert_direct(
    index: Index, size: Index, axes: tuple[Axis, ...], dims: tuple[sympy.Symbol, ...]
) -> Index | None:
    """The usual case: every dimension is a separate loop, or has one element."""
    if sum(extent != 1 for extent in size) != len(axes):
        return None
    place = {i: k for k, i in enumerate(index) if i.is_Symbol}
    if any(axis.var not in place or size[place[axis.var]] != axis.size for axis in axes):
        return None
    return tuple(dims[place[axis.var]] for axis in axes)


def _invert_digits(
    index: Index, size: Index, axes: tuple[Axis, ...], dims: tuple[sympy.Symbol, ...]
) -> Index | None:
    """The case of a loop variable split among dimensions: with channels last, one loop runs over
    images, rows and columns, on both sides of the channels (group, and channel within it)."""
    sizes = {axis.var: axis.size for axis in axes}
    digits: dict[sympy.Symbol, dict[Expr, tuple[Expr, Expr]]] = {axis.var: {} for axis in axes}
    for dim, part, extent in zip(dims, index, size, strict=True):
        parsed = {} if extent == 1 else _digits(part, sizes)
        step: Expr = _ONE
        while parsed and step in parsed:
            variable_, digit_step, radix = parsed.pop(step)
            if digit_step in digits[variable_]:
                return None
            following = simplify(step * radix)
            value = FloorDiv(dim, step)
            digits[variable_][digit_step] = (
                value if following == extent else Mod(value, radix),
                radix,
            )
            step = following
        if parsed is None or parsed or step != extent:
            return None
    numbers = [_combine_digits(digits[axis.var], axis.size) for axis in axes]
    return None if None in numbers else tuple(number for number in numbers if number is not None)


def _combine_digits(digits: Mapping[Expr, tuple[Expr, Expr]], size: Expr) -> Expr | None:
    """Return the number below ``size`` with these digits (by step, with their radices)."""
    step, number, count = _ONE, _ZERO, 0
    while step in digits:
        value, radix = digits[step]
        number, step, count = number + value * step, simplify(step * radix), count + 1
        if radix == 1:
            return None
    return number if step == size and count == len(digits) else None


def _digits(
    part: Expr, sizes: Mapping[sympy.Symbol, Expr]
) -> dict[Expr, tuple[sympy.Symbol, Expr, Expr]] | None:
    """Parse a sum of digits, by factor: each digit's variable, its step, and its radix."""
    digits: dict[Expr, tuple[sympy.Symbol, Expr, Expr]] = {}
    for term in sympy.Add.make_args(part):
        inside = [factor for factor in sympy.Mul.make_args(term) if factor.free_symbols & {*sizes}]
        digit = _digit(inside[0], sizes) if len(inside) == 1 else None
        factor = _ONE if digit is None else term / inside[0]
        if digit is None or factor in digits:
            return None
        digits[factor] = digit
    return digits


def _digit(
    part: Expr, sizes: Mapping[sympy.Symbol, Expr]
) -> tuple[sympy.Symbol, Expr, Expr] | None:
    part, radix = part.args if isinstance(part, Mod) else (part, None)
    variable_, step = part.args if isinstance(part, FloorDiv) else (part, _ONE)
    if variable_ not in sizes or not step.free_symbols.isdisjoint(sizes):
        return None
    if radix is None:
        radix = simplify(FloorDiv(sizes[variable_], step))
        if simplify(radix * step) != sizes[variable_]:
            return None
    return variable_, step, radix


def reindexing_at(
    index: Index, size: Index, axes: tuple[Axis, ...], at: Index, ranges: Ranges
) -> dict[sympy.Symbol, Expr] | None:
    """Return expressions for ``axes`` with which ``index`` equals ``at`` (over ``ranges``)."""
    variables = invert_index(index, size, axes)
    if variables is None:
        return None
    dims = {variable("d", k): i for k, i in enumerate(at)}
    return {
        axis.var: simplify(substitute_expr(expr, dims), ranges)
        for axis, expr in zip(axes, variables, strict=True)
    }
