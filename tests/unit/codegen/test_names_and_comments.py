"""Names are stable by content; the metadata comment is Inductor's, with a path that exists."""

from __future__ import annotations

import sympy

from scheduler.codegen.comment import MetadataComment, source_name
from scheduler.codegen.names import fused_name, kernel_name
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Origin, Ref, TensorMeta
from scheduler.ir.operations import Buffer, BufferKind, GroupKind, Lowered
from tests.support.memory import contiguous
from tests.unit.codegen.loopnest import ints


def node(name: str, target: str, *args: object, source: str = "", **kwargs: object) -> Node:
    origin = Origin(torch_function=source)
    return Node(name, target, args, kwargs, (name,), origin)  # type: ignore[arg-type]


def scheduled(*nodes: Node, reads: tuple[str, ...] = ()) -> tuple[SchedulerNode, Lowered]:
    square = ints(64, 64)
    meta = TensorMeta(DType.F32, square, contiguous((64, 64)))
    inputs = (GraphInput("arg0_1", InputKind.USER), GraphInput("arg2_1", InputKind.USER))
    tensors = dict.fromkeys(("arg0_1", "arg2_1", *(n.name for n in nodes)), meta)
    graph = Graph("g", "", {}, inputs, (nodes[-1].name,), nodes, tensors, {})
    buffers = {
        "arg0_1": Buffer("arg0_1", DType.F32, *_layout(), BufferKind.INPUT, "arg0_1"),
        "arg2_1": Buffer("arg2_1", DType.F32, *_layout(), BufferKind.INPUT, "arg2_1"),
        "buf0": Buffer("buf0", DType.F32, *_layout(), BufferKind.OUTPUT, nodes[-1].name),
    }
    one = sympy.Integer(1)
    names = tuple(n.name for n in nodes)
    made = SchedulerNode("n0", GroupKind.GEMM, (), (one, one), reads, ("buf0",), names)
    return made, Lowered(graph, buffers, (), (), ())


def _layout() -> tuple[tuple[sympy.Expr, ...], tuple[sympy.Expr, ...]]:
    return ints(64, 64), contiguous((64, 64))


def test_the_comment_is_inductors() -> None:
    mm = node("addmm", "aten.addmm.default", Ref("arg0_1"), Ref("arg2_1"), source="linear_1;F.x")
    relu = node("relu", "aten.relu.default", Ref("addmm"))
    made, lowered = scheduled(mm, relu, reads=("arg2_1",))
    assert MetadataComment(lowered, "source.hip")(made, "rocm_fused_addmm_relu_0badcafe").split(
        "\n"
    ) == [
        "// kernel path: kernels/rocm_fused_addmm_relu_0badcafe/source.hip",
        "// Topologically Sorted Source Nodes: [linear_1, relu], "
        "Original ATen: [aten.addmm, aten.relu]",
        "// Source node to ATen node mapping:",
        "//   linear_1 => addmm",
        "//   relu => relu",
        "// Graph fragment:",
        '//   %arg2_1 : Tensor "f32[64, 64][64, 1]cuda:0" = PlaceHolder[target=arg2_1]',
        '//   %addmm : Tensor "f32[64, 64][64, 1]cuda:0"[num_users=1] = '
        "call_function[target=torch.ops.aten.addmm.default]"
        "(args = (%arg0_1, %arg2_1), kwargs = {})",
        '//   %relu : Tensor "f32[64, 64][64, 1]cuda:0"[num_users=1] = '
        "call_function[target=torch.ops.aten.relu.default](args = (%addmm,), kwargs = {})",
        "//   return %buf0",
        "",
    ]


def test_arguments_are_written_as_fx_writes_them() -> None:
    cast = node("to", "aten.to.dtype", Ref("arg0_1"), DType.F16, (1, -1), None, alpha=2.5)
    made, lowered = scheduled(cast)
    text = MetadataComment(lowered, "source.hip")(made, "k")
    assert "(args = (%arg0_1, torch.float16, [1, -1], None), kwargs = {alpha: 2.5})" in text


def test_a_models_names_cannot_leave_the_comment() -> None:
    hostile = node("x", "aten.relu.default", Ref("arg0_1"), source='y\n#include "/etc/passwd"\\;')
    made, lowered = scheduled(hostile)
    text = MetadataComment(lowered, "source.hip")(made, "k")
    assert all(line.startswith("// ") for line in text.splitlines())
    assert not any(line.endswith("\\") for line in text.splitlines())


def test_fused_names_are_sorted_distinct_and_bounded() -> None:
    ops = tuple(node(f"n{i}", op) for i, op in enumerate(
        ["aten.mul.Tensor", "aten.add.Tensor", "aten.add_.Tensor", "_operator.floordiv"]
    ))  # fmt: skip
    assert fused_name(ops) == "fused_add_floordiv_mul"
    many = tuple(node(f"n{i}", f"aten.operation_{i:02}.default") for i in range(30))
    assert len(fused_name(many)) < 100
    assert fused_name(many).endswith("_and_25_more")
    assert fused_name((node("n", "aten.evil(); //.x"),)).isidentifier()


def test_the_name_follows_the_text() -> None:
    made, lowered = scheduled(node("addmm", "aten.addmm.default"))
    names = {
        kernel_name("rocm", made, lowered.graph, text)
        for text in ("KERNEL_NAME 1", "KERNEL_NAME 2")
    }
    assert len(names) == 2
    assert kernel_name("rocm", made, lowered.graph, "KERNEL_NAME 1") == "rocm_fused_addmm_4525b700"


def test_a_source_node_is_named_without_the_kind_of_its_function() -> None:
    made = node("view_1", "aten.view.default", source="method_descriptor.view")
    assert source_name(made) == "view"
    assert source_name(node("mm", "aten.mm.default")) == "mm"
