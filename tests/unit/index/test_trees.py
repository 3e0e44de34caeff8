"""Index expressions inside trees keep their value wherever what they read from memory lies."""

from __future__ import annotations

import itertools

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.functions import as_expr, evaluate, symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.trees import access_offset, simplify_tree
from scheduler.ir.operations import Buffer, BufferKind
from scheduler.ir.values import Indirect, Load, loads
from tests.unit.index.expressions import grown

ROW, COLUMN, PLACE, OTHER = symbol("i"), symbol("j"), symbol("ind0"), symbol("ind1")
ROWS, COLUMNS, PLACES, OTHERS = 3, 4, 5, 6
EXTENTS = {ROW: ROWS, COLUMN: COLUMNS, PLACE: PLACES, OTHER: OTHERS}
LOOPS = Ranges(((ROW, as_expr(ROWS)), (COLUMN, as_expr(COLUMNS))))

_leaves = st.sampled_from([ROW, COLUMN, PLACE]) | st.integers(-4, 9).map(sympy.Integer)
_divisors = st.integers(1, 8).map(sympy.Integer)
_indices = st.recursive(_leaves, lambda inner: grown(inner, _divisors), max_leaves=6)


def gathered(index: Expr, inner: Expr = ROW) -> Load:
    """``x[index]`` where ``ind0`` in it is ``ids[inner]``, and ``ind1`` in that is ``more[i]``."""
    nested = Indirect(OTHER, Load("more", (ROW,), DType.I64), as_expr(OTHERS))
    ids = Load("ids", (inner,), DType.I64, (nested,))
    return Load("x", (index,), DType.F32, (Indirect(PLACE, ids, as_expr(PLACES)),))


def assert_equal_everywhere(before: Expr, after: Expr) -> None:
    for point in itertools.product(*map(range, EXTENTS.values())):
        values = {variable.name: at for variable, at in zip(EXTENTS, point, strict=True)}
        assert evaluate(after, values) == evaluate(before, values), values


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(_indices, _indices)
def test_an_index_keeps_its_value_at_every_position_read_from_memory(a: Expr, b: Expr) -> None:
    before = gathered(a, b.xreplace({PLACE: OTHER}))
    after = simplify_tree(before, LOOPS)
    for old, new in zip(loads(before), loads(after), strict=True):
        assert_equal_everywhere(old.index[0], new.index[0])


@settings(max_examples=150, deadline=None)
@given(_indices)
def test_an_offset_keeps_its_value_at_every_position_read_from_memory(index: Expr) -> None:
    stride = as_expr(7)
    buffer = Buffer("x", DType.F32, (as_expr(99),), (stride,), BufferKind.INPUT, "x")
    assert_equal_everywhere(index * stride, access_offset(gathered(index), buffer, LOOPS))


def test_the_row_before_a_gathered_one_is_held_on_the_axis() -> None:
    """A position of 0 has none before it: that the maximum goes must not be taken as shown."""
    clamped = sympy.Max(0, PLACE - 1)
    after = simplify_tree(gathered(clamped), LOOPS)
    assert isinstance(after, Load)
    assert after.index == (clamped,)
    assert affine(clamped, (PLACE,)) is None
