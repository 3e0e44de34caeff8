"""Attention that a model wrote out product by product is one operation, where that is the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Attention, Contraction
from scheduler.lowering import lower
from tests.unit.lowering.agreeing import assert_lowers
from tests.unit.lowering.graphs import GraphBuilder, Ref

F32, F64, BOOL = DType.F32, DType.F64, DType.BOOL
LEAST = float(np.finfo(np.float32).min)
HEADS, ROWS, COLUMNS, DEPTH = 2, 5, 7, 4


@dataclass
class Model:
    """Attention in a graph of float64, one node after the other."""

    b: GraphBuilder
    q: str
    k: str
    v: str

    @staticmethod
    def new(rows: int = ROWS, columns: int = COLUMNS) -> Model:
        rng = np.random.default_rng(3)
        b = GraphBuilder()
        shapes = ((rows, DEPTH), (columns, DEPTH), (columns, 3))
        q, k, v = (b.input(rng.standard_normal((2, HEADS, *shape)), F64) for shape in shapes)
        return Model(b, q, k, v)

    def call(self, op: str, *args: Any, **kwargs: Any) -> str:
        refs = [Ref(a) if isinstance(a, str) else a for a in args]
        return self.b.call(f"aten.{op}", *refs, **kwargs)

    def scores(self) -> str:
        turned = self.call("transpose.int", self.k, 2, 3)
        return self.call("matmul.default", self.q, turned)

    def weights(self, scores: str) -> str:
        return self.call("softmax.int", scores, -1)

    def out(self, scores: str) -> str:
        return self.call("matmul.default", self.weights(scores), self.v)

    def mask(self, *, rows: int = ROWS, columns: int = COLUMNS) -> str:
        """Which columns are seen, as an input: all, half of them, none."""
        seen = np.random.default_rng(4).random((rows, columns)) > 0.5
        seen[0], seen[1:2] = True, False
        return self.b.input(seen, BOOL)

    def ends(self, *outputs: str) -> list[Any]:
        """The operations, which give what the reference gives."""
        graph = self.b.graph(*outputs)
        with np.errstate(all="ignore"):
            values = {given.name: self.b.values[given.name] for given in graph.inputs}
            assert_lowers(graph, values, {}, {name: self.b.values[name] for name in outputs})
        return list(lower(graph).operations)

    def attention(self, *outputs: str) -> Attention | None:
        """The one that all of it became; None where there is none."""
        operations = self.ends(*outputs)
        found = [operation for operation in operations if isinstance(operation, Attention)]
        if found:
            assert operations == found
            return found[0]
        return None


def capped(m: Model, scores: str, cap: float = 1.5) -> str:
    within = m.call("tanh.default", m.call("div.Tensor", scores, cap))
    return m.call("mul.Tensor", within, cap)


def triangle(m: Model, *, rows: int = ROWS, columns: int = COLUMNS, first: int = 0) -> str:
    """``column <= row + first``, from indices."""
    row = m.call("unsqueeze.default", m.call("arange.start_step", 0, rows, 1), 1)
    column = m.call("arange.start_step", 0, columns, 1)
    return m.call("le.Tensor", column, m.call("add.Tensor", row, first) if first else row)


def test_a_soft_cap_stands_between_scale_and_mask() -> None:
    m = Model.new()
    scores = capped(m, m.call("mul.Tensor", m.scores(), 0.3))
    added = m.call("add.Tensor", scores, m.b.input(np.linspace(-1, 1, COLUMNS), F64))
    found = m.attention(m.out(added))
    assert found is not None
    assert found.cap == 1.5
    assert math.isclose(found.scale, 0.3)
    assert found.mask is not None
    assert not found.causal
    assert not found.safe, "a mask from memory may be minus infinity in all of a row"


def test_without_a_cap_it_is_the_operation_that_torchs_attention_becomes() -> None:
    m = Model.new()
    found = m.attention(m.out(m.call("mul.Tensor", m.scores(), 0.5)))
    own = Model.new()
    out = own.call("scaled_dot_product_attention.default", own.q, own.k, own.v)
    expected = own.attention(out)
    assert found is not None
    assert expected is not None
    for name in ("row", "column", "depth", "mask", "causal", "scale", "cap", "safe"):
        assert getattr(found, name) == getattr(expected, name)


def test_what_is_hidden_from_indices_is_no_mask_in_memory() -> None:
    for fill in (-math.inf, LEAST, -1e9):
        m = Model.new()
        hidden = m.call("where.ScalarOther", triangle(m), m.scores(), fill)
        found = m.attention(m.out(hidden))
        assert found is not None
        assert (found.causal, found.mask, found.safe) == (True, None, True)


def test_a_window_is_a_condition_of_indices() -> None:
    m = Model.new()
    near = m.call("logical_not.default", triangle(m, first=-3))
    seen = m.call("logical_and.default", triangle(m), near)
    added = m.call("where.Scalar", seen, 0.0, LEAST)
    found = m.attention(m.out(m.call("add.Tensor", m.scores(), added)))
    assert found is not None
    assert found.causal
    assert found.mask is not None
    assert found.mask.dtype is BOOL
    assert found.safe


def test_rows_that_see_nothing_by_indices() -> None:
    """Row 0 sees no column: NaN by minus infinity, all columns alike by a number."""
    for fill in (-math.inf, LEAST):
        m = Model.new()
        hidden = m.call("where.ScalarOther", triangle(m, first=-1), m.scores(), fill)
        found = m.attention(m.out(hidden))
        assert found is not None
        assert found.mask is not None
        assert (found.mask.dtype is BOOL) == math.isinf(fill)
        assert not found.safe


@pytest.mark.parametrize("fill", [-1e4, -1e9, LEAST, -math.inf])
def test_what_is_added_to_rows_that_see_nothing_leaves_what_was_hidden_before(fill: float) -> None:
    """Row 0's scores differ by what they differed, and minus infinity stays that."""
    m = Model.new()
    hidden = m.call("where.ScalarOther", m.mask(), m.scores(), -math.inf)
    added = m.call("where.Scalar", triangle(m, first=-1), 0.0, fill)
    found = m.attention(m.out(m.call("add.Tensor", hidden, added)))
    assert found is not None
    assert not found.safe


@pytest.mark.parametrize(("dtype", "kind"), [(DType.F16, BOOL), (F32, F32)])
def test_a_number_beyond_the_scores_type_is_minus_infinity(dtype: DType, kind: DType) -> None:
    rng = np.random.default_rng(6)
    b = GraphBuilder()
    q, k, v = (b.input(rng.standard_normal((2, ROWS, DEPTH)), dtype) for _ in range(3))
    seen = b.input(rng.random((ROWS, ROWS)) > 0.5, BOOL)
    scores = b.call(
        "aten.bmm.default", Ref(q), Ref(b.call("aten.mT.default", Ref(k), dtype=dtype)), dtype=dtype
    )
    hidden = b.call("aten.where.ScalarOther", Ref(seen), Ref(scores), -1e9, dtype=dtype)
    weights = b.call("aten.softmax.int", Ref(hidden), -1, dtype=dtype)
    graph = b.graph(b.call("aten.bmm.default", Ref(weights), Ref(v), dtype=dtype))
    (found,) = lower(graph).operations
    assert isinstance(found, Attention)
    assert found.mask is not None
    assert found.mask.dtype is kind
    assert not found.safe


def _of_floats(*, mask: DType | None = None, weights: DType | None = None) -> list[Any]:
    """The operations of attention of f32, a mask of another type added, or weights turned into
    another and back."""
    rng = np.random.default_rng(6)
    b = GraphBuilder()
    q, k, v = (b.input(rng.standard_normal((2, ROWS, DEPTH)), F32) for _ in range(3))
    turned = b.call("aten.mT.default", Ref(k), dtype=F32)
    scores = b.call("aten.bmm.default", Ref(q), Ref(turned), dtype=F32)
    if mask is not None:
        least = np.zeros((ROWS, ROWS))
        least[1] = np.finfo(np.float64).min if mask is F64 else LEAST
        scores = b.call("aten.add.Tensor", Ref(scores), Ref(b.input(least, mask)), dtype=mask)
    made = b.call("aten.softmax.int", Ref(scores), -1, dtype=mask or F32)
    for other in (weights, F32):
        if other is not None:
            made = b.call("aten.to.dtype", Ref(made), other, dtype=other)
    graph = b.graph(b.call("aten.bmm.default", Ref(made), Ref(v), dtype=F32))
    return list(lower(graph).operations)


def test_a_mask_of_f64_is_none_of_f32() -> None:
    """Its least number would be minus infinity there: a row of such is uniform, not NaN."""
    assert any(isinstance(one, Attention) for one in _of_floats(mask=F32))
    assert not any(isinstance(one, Attention) for one in _of_floats(mask=F64))


@pytest.mark.parametrize("dtype", [DType.F8E4M3FN, DType.F8E5M2], ids=lambda one: one.label)
def test_weights_of_8_bits_are_no_weights_of_f32(dtype: DType) -> None:
    """Of floats of 16 bits the rounding is left out; of these it is a tenth of a weight."""
    assert any(isinstance(one, Attention) for one in _of_floats(weights=DType.BF16))
    assert not any(isinstance(one, Attention) for one in _of_floats(weights=dtype))


def test_the_transposed_product_serves_as_well() -> None:
    m = Model.new()
    turned = m.call("transpose.int", m.q, 2, 3)
    scores = m.call("transpose.int", m.call("matmul.default", m.k, turned), 2, 3)
    found = m.attention(m.out(scores))
    assert found is not None
    assert (found.row.size, found.column.size) == (ROWS, COLUMNS)


def test_one_query() -> None:
    m = Model.new(rows=1)
    seen = m.mask(rows=1)
    hidden = m.call("masked_fill.Scalar", capped(m, m.scores()), seen, -math.inf)
    assert m.attention(m.out(hidden)) is not None


def test_heads_that_share_keys_and_a_last_product_over_merged_rows() -> None:
    m = Model.new()
    k, v = (m.call("slice.Tensor", x, 1, 0, 1) for x in (m.k, m.v))
    k, v = (m.call("slice.Tensor", x, 0, 0, 1) for x in (k, v))
    scores = m.call("matmul.default", m.q, m.call("transpose.int", k, 2, 3))
    found = m.attention(m.call("matmul.default", m.weights(scores), v))
    assert found is not None


# ---- what must stay as it is


def _weights_are_an_output(m: Model) -> tuple[str, ...]:
    weights = m.weights(m.scores())
    return m.call("matmul.default", weights, m.v), weights


def _scores_are_read_elsewhere(m: Model) -> tuple[str, ...]:
    scores = capped(m, m.scores())
    return m.out(scores), m.call("sum.default", scores)


def _other_dimension(m: Model) -> tuple[str, ...]:
    weights = m.call("softmax.int", m.scores(), -2)
    return (m.call("matmul.default", weights, m.v),)


def _weights_are_changed(m: Model) -> tuple[str, ...]:
    weights = m.call("mul.Tensor", m.weights(m.scores()), 0.5)
    return (m.call("matmul.default", weights, m.v),)


def _two_caps(m: Model) -> tuple[str, ...]:
    return (m.out(capped(m, capped(m, m.scores()))),)


def _cap_after_the_mask(m: Model) -> tuple[str, ...]:
    added = m.call("add.Tensor", m.scores(), m.b.input(np.linspace(-1, 1, COLUMNS), F64))
    return (m.out(capped(m, added)),)


def _another_function(m: Model) -> tuple[str, ...]:
    return (m.out(m.call("relu.default", m.scores())),)


def _a_mask_that_hides_little(m: Model) -> tuple[str, ...]:
    return (m.out(m.call("masked_fill.Scalar", m.scores(), m.mask(), -3.0)),)


def _a_mask_of_the_scores(m: Model) -> tuple[str, ...]:
    scores = m.scores()
    return (m.out(m.call("add.Tensor", scores, m.call("relu.default", scores))),)


def _too_deep(m: Model) -> tuple[str, ...]:
    rng = np.random.default_rng(5)
    m.q, m.k = (m.b.input(rng.standard_normal((2, HEADS, n, 264)), F64) for n in (ROWS, COLUMNS))
    return (m.out(m.scores()),)


def _scores_are_padded(m: Model) -> tuple[str, ...]:
    """There are more weights than keys: what is read of scores ends before them."""
    padded = m.call("constant_pad_nd.default", m.scores(), [0, 2], -math.inf)
    rng = np.random.default_rng(7)
    return (
        m.call(
            "matmul.default",
            m.weights(padded),
            m.b.input(rng.standard_normal((2, HEADS, COLUMNS + 2, 3)), F64),
        ),
    )


def _one_head_padded(m: Model) -> tuple[str, ...]:
    """Nothing of another head lies behind the first one's scores."""
    rng = np.random.default_rng(7)
    q, k, v = (
        m.b.input(rng.standard_normal((2, *size)), F64)
        for size in ((ROWS, DEPTH), (COLUMNS, DEPTH), (COLUMNS + 2, 3))
    )
    scores = m.call("bmm.default", q, m.call("transpose.int", k, 1, 2))
    padded = m.call("constant_pad_nd.default", scores, [0, 2], -1e9)
    return (m.call("bmm.default", m.weights(padded), v),)


def _averaged_by_other_scores(m: Model) -> tuple[str, ...]:
    """The sum of exponentials is of other scores than the powers."""
    scores = m.scores()
    top = m.call("amax.default", scores, (-1,), True)
    power = m.call("exp.default", m.call("sub.Tensor", scores, top))
    total = m.call("sum.dim_IntList", m.call("exp.default", scores), (-1,), True)
    return (m.call("matmul.default", m.call("div.Tensor", power, total), m.v),)


OTHERS: tuple[Callable[[Model], tuple[str, ...]], ...] = (
    _weights_are_an_output,
    _scores_are_read_elsewhere,
    _other_dimension,
    _weights_are_changed,
    _two_caps,
    _cap_after_the_mask,
    _another_function,
    _a_mask_that_hides_little,
    _a_mask_of_the_scores,
    _too_deep,
    _averaged_by_other_scores,
    _scores_are_padded,
    _one_head_padded,
)


@pytest.mark.parametrize("make", OTHERS, ids=lambda make: make.__name__)
def test_what_is_not_the_same_stays_two_products(
    make: Callable[[Model], tuple[str, ...]],
) -> None:
    m = Model.new(rows=COLUMNS) if make is _other_dimension else Model.new()
    operations = m.ends(*make(m))
    assert not any(isinstance(operation, Attention) for operation in operations)
    assert sum(isinstance(operation, Contraction) for operation in operations) == 2


def test_many_sums_of_sums_are_given_up() -> None:
    """Each is read twice: following all of them would take for ever."""
    m = Model.new()
    total = m.b.input(np.zeros((2, HEADS, ROWS, COLUMNS)), F64)
    for _ in range(40):
        total = m.call("add.Tensor", m.call("relu.default", total), total)
    assert m.attention(m.out(m.call("add.Tensor", total, total))) is None


# ---- whatever is done to scores one after the other

FACTORS = st.sampled_from([0.5, -0.7, 2.0])
FILLS = st.sampled_from([-math.inf, LEAST, -1e9, -1e4])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["mul.Tensor", "div.Tensor"]), FACTORS),
    st.tuples(st.just("tanh.default")),
    st.tuples(st.just("neg.default")),
    st.tuples(st.just("bias")),
    st.tuples(st.just("infinite bias")),
    st.tuples(st.just("hidden"), FILLS),
    st.tuples(st.just("triangle"), FILLS, st.integers(-2, 2)),
    # Of a sum with another number each order rounds differently.
    st.tuples(st.just("added"), st.sampled_from([-math.inf, LEAST, -1e4]), st.integers(-2, 2)),
)
_BY_INDICES = ("triangle", "added")
_HIDING = ("hidden", *_BY_INDICES)
_SCALING = ("mul.Tensor", "div.Tensor", "neg.default", "tanh.default")


def _step(m: Model, scores: str, step: tuple[Any, ...]) -> str:
    kind, *given_ = step
    if kind in _SCALING:
        return m.call(kind, scores, *given_)
    if kind == "hidden":
        return m.call("where.ScalarOther", m.mask(), scores, *given_)
    if kind == "triangle":
        fill, first = given_
        return m.call("where.ScalarOther", triangle(m, first=first), scores, fill)
    if kind == "added":
        fill, first = given_
        added = m.call("where.Scalar", triangle(m, first=first), 0.0, fill)
        return m.call("add.Tensor", scores, added)
    bias = np.random.default_rng(9).standard_normal((ROWS, COLUMNS))
    if kind == "infinite bias":
        bias[bias > 1], bias[2] = -np.inf, LEAST
    return m.call("add.Tensor", scores, m.b.input(bias, F64))


def _is_one(steps: list[tuple[Any, ...]]) -> bool:
    """Scaling on both sides of one tanh, then masks. A number that hides scores must not matter
    where a row sees nothing but such: it is all that is there, or every row sees a column by
    indices. One that is added is like any mask otherwise."""
    kinds = [step[0] for step in steps]
    begin = next((i for i, kind in enumerate(kinds) if kind not in _SCALING), len(kinds))
    if kinds.count("tanh.default") > 1 or any(kind in _SCALING for kind in kinds[begin:]):
        return False
    numbers = [step[0] for step in steps if step[0] in _HIDING and step[1] > -math.inf]
    if all(step[0] in _BY_INDICES and step[2] >= 0 for step in steps[begin:]):
        return True
    hiding = [kind for kind in numbers if kind != "added"]
    return not hiding or (len(numbers) == 1 and all(kind in _HIDING for kind in kinds[begin:]))


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=5))
def test_any_steps_give_what_the_reference_gives(steps: list[tuple[Any, ...]]) -> None:
    m = Model.new()
    scores = m.scores()
    for step in steps:
        scores = _step(m, scores, step)
    note(repr(steps))
    assert (m.attention(m.out(scores)) is not None) == _is_one(steps)


def test_attention_within_the_scores_of_another_is_computed_once() -> None:
    m = Model.new(rows=COLUMNS)
    d = m.b.input(np.random.default_rng(5).standard_normal((2, HEADS, 3, 2)), F64)
    inner = m.out(m.scores())
    operations = m.ends(m.call("matmul.default", m.call("softmax.int", inner, -1), d))
    assert [type(operation) for operation in operations].count(Attention) == 1
