"""``torch.vmap`` in a file: its ops on whole tensors, held against torch's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.frontends.vmap import with_batch_dimensions
from scheduler.ir.check import check_graph
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, TensorMeta
from scheduler.lowering import layout
from scheduler.reference import run
from tests.unit.torch_export import agree, as_module, export

torch = pytest.importorskip("torch")

STEP = "torch._functorch.predispatch."
RNG = np.random.default_rng(5)
INPUTS = (GraphInput("x", InputKind.USER),)


def tensor(*size: int) -> Any:
    return torch.from_numpy(RNG.standard_normal(size))


def meta(size: Sequence[int]) -> TensorMeta:
    sizes = tuple(map(sympy.Integer, size))
    return TensorMeta(DType.F64, sizes, layout.contiguous_strides(sizes))


@st.composite
def nests(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int | None]], list[int]]:
    """Sizes of two operands; for each level of vmap, outermost first, which dimension it hides of
    each (of one at least) and where the result has it."""
    ranks = draw(st.lists(st.integers(0, 2), min_size=2, max_size=2))  # of one example
    sizes = [[5, 6][2 - rank :] for rank in ranks]
    hidden: list[list[int | None]] = []
    outs: list[int] = []
    for extent in [2, 3, 4][: draw(st.integers(1, 3))]:
        has = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
        places = [
            draw(st.integers(0, len(size))) if each else None
            for size, each in zip(sizes, has, strict=True)
        ]
        for size, place in zip(sizes, places, strict=True):
            if place is not None:
                size.insert(place, extent)
        hidden.insert(0, places)
        outs.insert(0, draw(st.integers(0, max(ranks) + len(outs))))
    return sizes, hidden, outs


def recorded(
    sizes: Sequence[Sequence[int]], hidden: Sequence[Sequence[int | None]], outs: Sequence[int]
) -> Graph:
    """What torch records of ``vmap(vmap(mul))``: shapes are those of one example."""
    nodes: list[Node] = []
    tensors: dict[str, TensorMeta] = {}
    names = ["x", "y"]
    now = [list(size) for size in sizes]
    for name, size in zip(names, sizes, strict=True):
        tensors[name] = meta(size)
    extents: list[int] = []
    for level, places in enumerate(hidden, 1):
        for at, place in enumerate(places):
            if place is None:
                continue
            extent = now[at].pop(place)
            output = f"{names[at]}_{level}"
            args = (Ref(names[at]), place, level)
            nodes.append(Node(output, f"{STEP}_add_batch_dim", args, {}, (output,)))
            names[at], tensors[output] = output, meta(now[at])
        extents.append(extent)
    nodes.append(Node("mul", "aten.mul.Tensor", (Ref(names[0]), Ref(names[1])), {}, ("mul",)))
    result = list(np.broadcast_shapes(*now))
    tensors["mul"] = meta(result)
    name = "mul"
    for level in range(len(hidden), 0, -1):
        result.insert(outs[level - 1], extents[level - 1])
        output = f"out_{level}"
        args = (Ref(name), level, extents[level - 1], outs[level - 1])
        nodes.append(Node(output, f"{STEP}_remove_batch_dim", args, {}, (output,)))
        name, tensors[output] = output, meta(result)
    inputs = tuple(GraphInput(each, InputKind.USER) for each in ("x", "y"))
    return Graph("g", "", {}, inputs, (name,), tuple(nodes), tensors, {})


@settings(deadline=None, max_examples=60)
@given(nests())
def test_dimensions_of_any_nest_are_where_torch_has_them(nest: Any) -> None:
    sizes, hidden, outs = nest
    x, y = (tensor(*size) for size in sizes)
    function: Any = torch.mul
    for places, out in zip(hidden[::-1], outs[::-1], strict=True):
        function = torch.vmap(function, in_dims=tuple(places), out_dims=out)
    graph = with_batch_dimensions(recorded(sizes, hidden, outs))
    check_graph(graph)
    (got,) = run(graph, {"x": x.numpy(), "y": y.numpy()}, {}).values()
    np.testing.assert_array_equal(got, function(x, y).numpy())


FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "numbers of f32 and f64": (lambda a, b: a * b, (tensor(4, 3).float(), tensor(4))),
    "numbers beside integers": (lambda a, b: a * b, (torch.arange(12).view(4, 3), tensor(4))),
    "nested": (lambda a, b: torch.vmap(lambda c: a * c + a)(b), (tensor(4, 3), tensor(4, 5, 3))),
    "no argument's": (lambda a, b: (a + 1, torch.ones(2) * 3), (tensor(4, 3), tensor(4))),
    "matrices": (lambda a, b: torch.bmm(a, b) + a @ b, (tensor(5, 4, 3, 3),) * 2),
    "conversions": (lambda a, b: a.float().clone() + b, (tensor(4, 3), tensor(4))),
    "conditions": (lambda a, b: torch.where(a > b, a, 0.5).clamp(max=b), (tensor(4, 3), tensor(4))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_under_vmap_is_right(name: str, tmp_path: Path) -> None:
    function, args = FUNCTIONS[name]
    graph = agree(as_module(torch.vmap(function)), args, tmp_path)
    assert not any("predispatch" in node.target for node in graph.nodes)


def test_what_is_captured_is_no_examples_own(tmp_path: Path) -> None:
    def model(x: Any, y: Any) -> Any:
        return torch.vmap(lambda a: a @ y + a.sin() * y[0, 0])(x)

    agree(as_module(model), (tensor(4, 3, 3), tensor(3, 3)), tmp_path)


def test_vmap_in_a_branch(tmp_path: Path) -> None:
    def model(x: Any) -> Any:
        return torch.cond(x.sum() > 0, torch.vmap(torch.exp), torch.sin, (x,))

    for sign in (-1, 1):
        agree(as_module(model), (sign * tensor(4, 3).abs(),), tmp_path)


def test_a_batch_of_any_size(tmp_path: Path) -> None:
    agree(
        as_module(torch.vmap(lambda a, b: a * b + 1)),
        (tensor(4, 3), tensor(4, 3)),
        tmp_path,
        dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},) * 2,),
        run_with=(tensor(7, 3), tensor(7, 3)),
    )


REFUSED = {
    "sum": (lambda a: a.sum(-1), "aten.sum.dim_IntList"),
    "in place": (lambda a: a.clone().mul_(2), "aten.mul_.Tensor"),
    "part": (lambda a: a * a[0], "aten.select.int"),
    "lists": (lambda a: torch.stack([a, a]), "aten.stack.default"),
    "halves": (torch.nn.functional.glu, "aten.glu.default"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_ops_are_refused_by_name(name: str, tmp_path: Path) -> None:
    function, op = REFUSED[name]
    with pytest.raises(UserError) as caught:
        export(as_module(torch.vmap(function)), (tensor(3, 4, 4),), tmp_path)
    said = str(caught.value)
    assert f"{op} under torch.vmap" in said
    assert "\n" not in said


def test_products_with_vectors_are_refused(tmp_path: Path) -> None:
    function = torch.vmap(torch.matmul)
    with pytest.raises(UserError, match=r"aten.matmul.default under .* multiplies by a vector"):
        export(as_module(function), (tensor(4, 3, 2), tensor(4, 2)), tmp_path)


def test_random_numbers_of_each_example_are_refused(tmp_path: Path) -> None:
    function = torch.vmap(lambda a: a + torch.rand(3), randomness="different")
    with pytest.raises(UserError, match="draws different random numbers for each example"):
        export(as_module(function), (tensor(4, 3),), tmp_path)


@pytest.mark.parametrize(
    ("step", "args", "says"),
    [
        ("_add_batch_dim", (Ref("x"), 2, 1), "no dimension 2 to hide"),
        ("_add_batch_dim", (Ref("x"), -1, 1), "no dimension -1 to hide"),
        ("_add_batch_dim", (Ref("x"), 0), "takes a tensor, a dimension and a level"),
        ("_add_batch_dim", (Ref("ghost"), 0, 1), "takes a tensor, a dimension and a level"),
        ("_remove_batch_dim", (Ref("x"), 1, 2, 9), "cannot have a dimension at 9"),
        ("_remove_batch_dim", (Ref("x"), "a", 2, 0), "takes a tensor and three numbers"),
    ],
)
def test_a_malformed_step_is_one_clear_line(step: str, args: tuple[Any, ...], says: str) -> None:
    node = Node("a", STEP + step, args, {}, ("a",))
    tensors = {"x": meta([2, 3]), "a": meta([3])}
    with pytest.raises(UserError, match=f"node 'a': .*{says}"):
        with_batch_dimensions(Graph("g", "", {}, INPUTS, ("a",), (node,), tensors, {}))


def test_a_value_that_leaves_vmap_with_its_dimension_hidden_is_refused() -> None:
    node = Node("a", f"{STEP}_add_batch_dim", (Ref("x"), 0, 1), {}, ("a",))
    tensors = {"x": meta([2, 3]), "a": meta([3])}
    with pytest.raises(UserError, match="output 'a' is used outside"):
        with_batch_dimensions(Graph("g", "", {}, INPUTS, ("a",), (node,), tensors, {}))
