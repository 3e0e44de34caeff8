"""The reference on its own: against loops and the C library, in place, shapes, random inputs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.frontends.pt2 import read
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import from_bits
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, SymbolInfo, TensorMeta
from scheduler.ir.index.functions import as_expr, symbol
from scheduler.ir.ops import UnsupportedOpError
from scheduler.reference import evaluate, random_inputs, round_to_dtype, run, symbolic_values

SAMPLES = Path(__file__).parents[2] / "scheduler" / "samples" / "graphs"
RNG = np.random.default_rng


def compute(target: str, *args: Any, **kwargs: Any) -> Any:
    """One op on arrays."""
    values = {f"v{i}": arg for i, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    given = tuple(Ref(f"v{i}") if isinstance(a, np.ndarray) else a for i, a in enumerate(args))
    node = Node("n", target, given, kwargs, ("n",))
    return evaluate(node, values, {})["n"]


def graph_of(nodes: list[Node], tensors: dict[str, tuple[int, ...]], inputs: list[str]) -> Graph:
    """A graph of float32 tensors of these sizes; strides are of no account here."""
    metas = {
        name: TensorMeta(DType.F32, tuple(map(as_expr, size)), tuple(map(as_expr, size)))
        for name, size in tensors.items()
    }
    given = tuple(GraphInput(name, InputKind.USER) for name in inputs)
    return Graph("g", "", {}, given, nodes[-1].outputs, tuple(nodes), metas, {})


def op(target: str, result: str, *args: Any) -> Node:
    """A node whose text arguments are values."""
    named = tuple(Ref(arg) if isinstance(arg, str) else arg for arg in args)
    return Node(result, target, named, {}, (result,))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 2), st.integers(0, 2), st.integers(1, 2), st.integers(0, 2**32),
)  # fmt: skip
def test_convolution_is_its_definition(
    groups: int,
    per_group: int,
    height: int,
    width: int,
    stride: int,
    pad: int,
    dilate: int,
    seed: int,
) -> None:
    rng = RNG(seed)
    x = rng.standard_normal((2, groups * 2, 7, 6))
    w = rng.standard_normal((groups * per_group, 2, height, width))
    got = compute(
        "aten.conv2d.default", x, w, None, (stride, stride), (pad, pad), (dilate, dilate), groups
    )
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    for n, o, i, j in np.ndindex(*got.shape):
        first = o // per_group * 2
        total = sum(
            padded[n, first + c, i * stride + u * dilate, j * stride + v * dilate] * w[o, c, u, v]
            for c, u, v in np.ndindex(2, height, width)
        )
        assert math.isclose(got[n, o, i, j], total, rel_tol=1e-9, abs_tol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 3), st.integers(1, 2), st.integers(1, 6), st.integers(1, 7),
    st.booleans(), st.sampled_from([None, "bool", "float"]), st.integers(0, 2**32),
)  # fmt: skip
def test_attention_is_its_definition(
    kv_heads: int, group: int, rows: int, columns: int, causal: bool, kind: str | None, seed: int
) -> None:
    rng = RNG(seed)
    q = rng.standard_normal((2, kv_heads * group, rows, 4))
    k, v = (rng.standard_normal((2, kv_heads, columns, size)) for size in (4, 3))
    mask: Any = None
    added = np.zeros((rows, columns))
    if kind and not causal:
        keep = rng.random((rows, columns)) < 0.6
        added = np.where(keep, 0.0, -np.inf if kind == "bool" else -3.0)
        mask = keep if kind == "bool" else added
    got = compute(
        "aten.scaled_dot_product_attention.default",
        *(q, k, v, mask, 0.0, causal),
        scale=0.7,
        enable_gqa=True,
    )
    for n, h, i in np.ndindex(2, kv_heads * group, rows):
        scores = 0.7 * k[n, h // group] @ q[n, h, i] + added[i]
        if causal:
            scores[i + 1 :] = -np.inf
        powers = np.exp(scores)
        total = powers.sum()
        expected = powers @ v[n, h // group] / total if total else np.zeros(3)
        np.testing.assert_allclose(got[n, h, i], expected, rtol=1e-9, atol=1e-12)


@given(st.floats(-30, 30))
def test_erf_erfc_and_gelu_are_the_c_librarys(x: float) -> None:
    for name in ("erf", "erfc"):
        got = float(compute(f"aten.{name}.default", np.array(x)))
        assert math.isclose(got, getattr(math, name)(x), rel_tol=1e-12, abs_tol=1e-300), name
    exact = 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    got = float(compute("aten.gelu.default", np.array(x)))
    assert math.isclose(got, exact, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("x", [-1e4, -800.0, 800.0, 1e4])
def test_no_overflow_far_from_zero(x: float) -> None:
    array = np.array([x])
    assert compute("aten.sigmoid.default", array)[0] in (0.0, 1.0)
    assert compute("aten.silu.default", array)[0] == (x if x > 0 else 0)
    assert compute("aten.softplus.default", array)[0] == (x if x > 0 else 0)
    assert np.isfinite(compute("aten.softmax.int", np.array([x, 0.0]), -1)).all()
    assert compute("aten.logsumexp.default", np.array([x, x]), (0,)) == x + math.log(2)


def test_reduction_over_nothing() -> None:
    empty = np.zeros((3, 0))
    assert (compute("aten.sum.dim_IntList", empty, (1,)) == 0).all()
    assert np.isnan(compute("aten.mean.dim", empty, (1,))).all()
    assert compute("aten.mm.default", empty, np.zeros((0, 4))).tolist() == [[0.0] * 4] * 3
    assert compute("aten.view.default", empty, (-1, 3)).shape == (0, 3)


def test_nan_wins_in_extremes() -> None:
    row = np.array([1.0, np.nan, 3.0])
    for name in ("amax", "amin"):
        assert np.isnan(compute(f"aten.{name}.default", row, (0,)))
    assert int(compute("aten.argmax.default", row, 0)) == 1
    assert np.isnan(compute("aten.relu.default", row)[1])
    assert np.isnan(compute("aten.clamp.default", row, 0, 2)[1])


def test_casts_keep_digits_unless_asked_to_round() -> None:
    x = np.array([1.0001, 70000.0, 2.5])
    node = Node("n", "aten.to.dtype", (Ref("x"), DType.F16), {}, ("n",))
    assert (evaluate(node, {"x": x}, {})["n"] == x).all()
    rounds = evaluate(node, {"x": x}, {}, round_casts=True)["n"]
    assert rounds.tolist() == [1.0, math.inf, 2.5]
    assert compute("aten.to.dtype", np.array([-1.7, 2.9]), DType.I32).tolist() == [-1, 2]


def test_an_in_place_op_alone_leaves_its_argument() -> None:
    x = np.ones(3)
    assert compute("aten.add_.Tensor", x, 1).tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]


def test_in_place_ops_in_a_graph_write_through_views_but_not_to_the_callers_arrays() -> None:
    nodes = [
        op("aten.relu.default", "a", "x"),
        op("aten.select.int", "row", "a", 0, 1),
        op("aten.add_.Tensor", "b", "row", 5),
        op("aten.mul.Tensor", "y", "a", 2),
    ]
    graph = graph_of(nodes, {"x": (2, 2), "a": (2, 2), "row": (2,), "b": (2,), "y": (2, 2)}, ["x"])
    x = np.array([[1.0, -1.0], [2.0, 3.0]])
    values = run(graph, {"x": x}, {}, keep=["a", "row"])
    assert values["y"].tolist() == [[2, 0], [14, 16]]
    assert values["a"].tolist() == [[1, 0], [2, 3]]  # as its own node made it
    assert values["row"].tolist() == [2, 3]
    assert x.tolist() == [[1, -1], [2, 3]]


def test_only_outputs_and_what_is_asked_for_are_kept() -> None:
    nodes = [op("aten.relu.default", "a", "x"), op("aten.neg.default", "b", "a")]
    graph = graph_of(nodes, {"x": (2,), "a": (2,), "b": (2,)}, ["x"])
    assert list(run(graph, {"x": np.ones(2)}, {})) == ["b"]
    assert list(run(graph, {"x": np.ones(2)}, {}, keep={"x", "a"})) == ["b", "x", "a"]


def test_a_shape_that_contradicts_the_graph_is_named() -> None:
    graph = graph_of([op("aten.relu.default", "a", "x")], {"x": (2,), "a": (3,)}, ["x"])
    with pytest.raises(UserError, match=r"node 'a': 'a' has the shape \[2\].*\['3'\]"):
        run(graph, {"x": np.ones(2)}, {})
    with pytest.raises(UserError, match="input 'x'"):
        run(graph, {"x": np.ones(5)}, {})
    with pytest.raises(UserError, match="input 'x' is missing"):
        run(graph, {}, {})


def test_sizes_as_values() -> None:
    n = symbol("n")
    sized = TensorMeta(DType.F32, (n,), (as_expr(1),))
    nodes = (
        op("aten.sym_size.int", "s", "x", 0),
        op("_operator.mul", "t", "s", 2),
        op("aten.arange.default", "r", "t"),
    )
    graph = Graph(
        "g",
        "",
        {"n": SymbolInfo("n", 4, 2, None)},
        (GraphInput("x", InputKind.USER),),
        ("r", "t"),
        nodes,
        {"x": sized, "r": TensorMeta(DType.I64, (2 * n,), (as_expr(1),))},
        {"s": n, "t": 2 * n},
    )
    values = run(graph, {"x": np.zeros(3)}, {"n": 3})
    assert values["r"].tolist() == [0, 1, 2, 3, 4, 5]
    assert values["t"] == 6
    assert symbolic_values(graph, {"n": 3}) == {"s": 3, "t": 6}


@pytest.mark.parametrize(
    ("target", "args"),
    [
        (  # a gradient would have to repeat what it drops
            "aten._scaled_dot_product_flash_attention_for_cpu.default",
            (*[np.ones((1, 1, 2, 3))] * 3, 0.5),
        ),
        ("aten.rms_norm.default", (np.ones(4), (4,))),
    ],
)
def test_what_has_no_single_answer_is_rejected_with_its_reason(target: str, args: Any) -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        compute(target, *args)
    assert caught.value.reason


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_float])
def test_rounded_values_are_the_types_own(dtype: DType) -> None:
    once = round_to_dtype(RNG(0).standard_normal(1000), dtype)
    assert (round_to_dtype(once, dtype) == once).all()
    if dtype is DType.BF16:
        assert (once.astype(np.float32).view(np.uint32) & 0xFFFF == 0).all()
    elif dtype.is_float8:
        assert np.isin(once, from_bits(np.arange(256, dtype=np.uint8), dtype)).all()
    else:
        assert (once.astype(dtype.numpy).astype(np.float64) == once).all()


BINDINGS = {"s70": 7}
SMALL = ["bert_2layer", "llama_2layer", "resnet_small", "vit_2layer"]


@pytest.mark.full
@pytest.mark.parametrize("name", SMALL)
def test_samples_run_on_random_inputs(name: str) -> None:
    """Shapes of every value are held against the graph's own; every number is finite."""
    graph = read(SAMPLES / f"{name}.pt2")
    bindings = {symbol: BINDINGS[symbol] for symbol in graph.symbols}
    inputs = random_inputs(graph, bindings, RNG(0))
    for value in graph.inputs:
        meta, array = graph.tensors[value.name], inputs[value.name]
        assert array.dtype == (np.float64 if meta.dtype.is_float else np.dtype(meta.dtype.numpy))
        assert (round_to_dtype(array, meta.dtype) == array).all()
    for output, array in run(graph, inputs, bindings).items():
        assert np.isfinite(array).all()
        assert 0.01 < np.abs(array).mean() < 100, output


def test_random_inputs_are_repeatable_and_independent_of_what_is_asked_for() -> None:
    graph = read(SAMPLES / "llama_2layer.pt2")
    first = random_inputs(graph, BINDINGS, RNG(1))
    names = [graph.inputs[3].name, graph.inputs[-1].name]
    second = random_inputs(graph, BINDINGS, RNG(1), only=names)
    assert set(second) == set(names)
    for name in names:
        assert (first[name] == second[name]).all()
    assert (random_inputs(graph, BINDINGS, RNG(2), only=names)[names[0]] != first[names[0]]).any()


def test_indices_lie_within_the_table_that_they_index() -> None:
    """Through casts, additions and views, the tightest of several tables counts."""
    tensors = {"small": (7, 2), "large": (20, 2), "e": (5, 2), "f": (1, 5, 2)}
    metas = {
        name: TensorMeta(DType.F32, tuple(map(as_expr, size)), tuple(map(as_expr, size)))
        for name, size in tensors.items()
    }
    for name, size in {"i": (5,), "j": (5,), "k": (1, 5)}.items():
        metas[name] = TensorMeta(DType.I64, tuple(map(as_expr, size)), tuple(map(as_expr, size)))
    nodes = (
        op("aten.add.Tensor", "j", "i", 2),
        op("aten.embedding.default", "e", "small", "j"),
        op("aten.unsqueeze.default", "k", "i", 0),
        op("aten.embedding.default", "f", "large", "k"),
    )
    given = tuple(GraphInput(name, InputKind.USER) for name in ("i", "small", "large"))
    graph = Graph("g", "", {}, given, ("e", "f"), nodes, metas, {})
    seen = np.concatenate([random_inputs(graph, {}, RNG(seed))["i"] for seed in range(50)])
    assert set(seen.tolist()) == {0, 1, 2, 3, 4}
