"""Loops whose bodies are operations: what is lowered, what memory they need, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from scheduler.fusion import schedule
from scheduler.fusion.verifier import verify
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Graph,
    GraphInput,
    InputKind,
    Node,
    Ref,
    Subgraph,
    SymbolInfo,
    TensorMeta,
)
from scheduler.ir.operations import Extern, LoopBegin, LoopEnd, unshared_buffers
from scheduler.ir.random import SEED
from scheduler.lowering import lower
from scheduler.lowering.verifier import InconsistentError
from scheduler.reference import run
from tests.unit.lowering.running import run_lowered, run_schedule


def meta(dtype: DType, *size: int) -> TensorMeta:
    extents = tuple(map(sympy.Integer, size))
    strides = tuple(int(np.prod(size[d + 1 :])) for d in range(len(size)))
    return TensorMeta(dtype, extents, tuple(map(sympy.Integer, strides)))


def associative(steps: int, target: str = "aten.mul.Tensor") -> Graph:
    """Running products of ``steps`` rows of three."""
    product = Node("product", target, (Ref("a"), Ref("b")), {}, ("c",))
    combine = Subgraph("combine", ("a", "b"), ("c",), (product,))
    node = Node("scan", "higher_order.associative_scan", (combine, (Ref("x"),), ()), {}, ("y",))
    row, whole = meta(DType.F32, 3), meta(DType.F32, steps, 3)
    return Graph(
        name="running",
        digest="",
        symbols={},
        inputs=(GraphInput("x", InputKind.USER),),
        outputs=("y",),
        nodes=(node,),
        tensors={"x": whole, "y": whole, "a": row, "b": row, "c": row},
        sym_ints={},
    )


@pytest.mark.parametrize("steps", [1, 64, 65, 100])
def test_an_associative_scan_runs_over_all_slices(steps: int) -> None:
    x = np.random.default_rng(3).uniform(0.9, 1.1, (steps, 3))
    lowered = lower(associative(steps))
    loops = [op for op in lowered.operations if isinstance(op, LoopBegin)]
    assert len(loops) == (steps > 64)
    expected = np.cumprod(x, 0)
    np.testing.assert_allclose(run_lowered(lowered, {"x": x}, {})["y"], expected)
    for fuse in (False, True):
        got = run_schedule(schedule(lowered, fuse=fuse), {"x": x}, {})["y"]
        np.testing.assert_allclose(got, expected)


def test_what_has_no_kernel_in_a_body_runs_by_itself() -> None:
    lowered = lower(associative(100, "mylib.frobnicate.default"))
    kinds = [type(op) for op in lowered.operations]
    assert kinds.index(LoopBegin) < kinds.index(Extern) < kinds.index(LoopEnd)
    extern = lowered.operations[kinds.index(Extern)]
    assert isinstance(extern, Extern)
    assert (extern.node, extern.nodes, extern.reason) == ("product", ("scan",), "unknown op")


def test_random_numbers_of_a_body_are_others_in_each_step() -> None:
    """For torch, and for the reference, which such a loop is left to."""
    draw = Node("draw", "aten.rand_like.default", (Ref("a"),), {}, ("c",))
    body = Subgraph("body", ("a",), ("c",), (draw,))
    node = Node("rows", "higher_order.map_impl", (body, (Ref("x"),), ()), {}, ("y",))
    graph = replace(associative(5), nodes=(node,), symbols={SEED: SymbolInfo(SEED, 0, 0, 9)})
    (extern,) = lower(graph).operations
    assert isinstance(extern, Extern)
    assert "random numbers" in extern.reason
    made = run(graph, {"x": np.zeros((5, 3))}, {SEED: 1})["y"]
    assert len({tuple(row) for row in made}) == 5


def test_a_size_that_only_a_body_knows_leaves_the_loop_to_the_reference(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.torch_export import as_module, export, inputs_of

    def loop(x: Any) -> Any:
        def body(y: Any) -> Any:
            return (y + y[y > 0].sum(),)

        return torch._higher_order_ops.while_loop(lambda y: y.sum() < 9, body, (x,))

    args = (torch.linspace(-0.5, 1, 5),)
    program, graph = export(as_module(loop), args, tmp_path)
    (extern,) = lower(graph).operations
    assert isinstance(extern, Extern)
    assert extern.reason.startswith("aten.index.Tensor in its inner graph: the size")
    (got,) = run(graph, inputs_of(program, graph, args), {}).values()
    np.testing.assert_allclose(got, loop(*args)[0].numpy(), rtol=1e-5)


def test_slices_begin_where_kernels_can_read_runs() -> None:
    """Rows of three floats are four apart; what a loop renames shares its memory with none."""
    plan = schedule(lower(associative(100)))
    (end,) = (m for n in plan.nodes for m in n.members if isinstance(m, LoopEnd))
    wholes = [whole for _, whole in end.slices] + [whole for whole, _ in end.begin.slices]
    assert [plan.lowered.buffers[name].stride[0] for name in wholes] == [4, 4]
    members = [member for node in plan.nodes for member in node.members]
    assert not unshared_buffers(members) & set(plan.storage)


def with_addend(steps: int) -> Graph:
    """The same, each step adding what is computed before the loop."""
    graph = associative(steps)
    row = meta(DType.F32, 3)
    sums = Node("sums", "aten.cumsum.default", (Ref("w"), 0), {}, ("added",))
    product = Node("product", "aten.mul.Tensor", (Ref("a"), Ref("b")), {}, ("c",))
    plus = Node("plus", "aten.add.Tensor", (Ref("c"), Ref("d")), {}, ("e",))
    combine = Subgraph("combine", ("a", "b", "d"), ("e",), (product, plus))
    args = (combine, (Ref("x"),), (Ref("added"),))
    return replace(
        graph,
        inputs=(*graph.inputs, GraphInput("w", InputKind.USER)),
        nodes=(sums, replace(graph.nodes[0], args=args)),
        tensors={**graph.tensors, **dict.fromkeys(("w", "added", "d", "e"), row)},
    )


def test_what_the_next_step_reads_is_not_freed_in_a_loop() -> None:
    """A schedule that says so is refused."""
    plan = schedule(lower(with_addend(100)))
    last = next(k for k, node in enumerate(plan.nodes) if isinstance(node.members[0], LoopEnd))
    (added,) = plan.nodes[0].writes
    assert added in plan.nodes[last].frees
    nodes = list(plan.nodes)
    reader = next(k for k in range(1, last) if added in nodes[k].reads)
    nodes[reader] = replace(nodes[reader], frees=(*nodes[reader].frees, added))
    nodes[last] = replace(nodes[last], frees=())
    with pytest.raises(InconsistentError, match=f"{added} is freed in a loop whose next step"):
        verify(replace(plan, nodes=tuple(nodes)))
