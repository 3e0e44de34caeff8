"""Affine parts of an index add up to the index, and each step is the same everywhere."""

from __future__ import annotations

import sympy
from hypothesis import given, settings

from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine, affine_parts
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.ranges import Ranges
from tests.unit.index.expressions import SIZES, A, J, K, S, expressions, values

VARIABLES = (A, J, K)
INSIDE = Ranges(((A, as_expr(3)), (J, as_expr(4)), (K, as_expr(3))), SIZES)


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_the_parts_add_up(expr: Expr) -> None:
    parts = affine_parts(expr, VARIABLES)
    assert all(before == after for before, after in values(INSIDE, expr, parts.expr()))


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_a_step_moves_as_far_everywhere(expr: Expr) -> None:
    parts = affine_parts(expr, VARIABLES)
    moved = Ranges(((A, as_expr(2)), *INSIDE.loops[1:]), SIZES)
    step = parts.step(A)
    if step is None:
        return
    assert step.free_symbols.isdisjoint(VARIABLES)
    for before, after, far in values(moved, expr, expr.xreplace({A: A + 1}), step):
        assert after - before == far


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_an_affine_form_is_complete(expr: Expr) -> None:
    form = affine(expr, VARIABLES)
    if form is None:
        assert affine_parts(expr, VARIABLES).nonlinear
        return
    assert form.rest.free_symbols.isdisjoint(VARIABLES)
    assert not form.nonlinear


def test_steps_and_rest_are_found() -> None:
    form = affine(768 * S * A + 3 * J + S, (A, J))
    assert form is not None
    assert (form.at(A), form.at(J), form.at(K), form.rest) == (768 * S, 3, 0, S)
    assert affine(FloorDiv(A, S), (A,)) is None
    assert affine(A * J, (A, J)) is None
    assert affine(sympy.Max(1, A), (A,)) is None


def test_what_is_nonlinear_stays_in_the_rest() -> None:
    parts = affine_parts(5 * A + 2 * J + FloorDiv(J, as_expr(3)) + S, (A, J))
    assert (parts.step(A), parts.step(J)) == (5, None)
    assert parts.at(J) == 2
    assert parts.rest == FloorDiv(J, as_expr(3)) + S
    assert affine_parts(Mod(A, S) * J, (A, J)).nonlinear == {A, J}
