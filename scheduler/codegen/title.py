"""How a problem is called in the autotune log: ``addmm(2240x256, 256x2048) f16``."""

from __future__ import annotations

from scheduler.codegen.problem import op_name
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Attention, Contraction, Lowered, numel


def title(node: SchedulerNode, lowered: Lowered) -> str:
    """The op with the sizes of what it works on, and its type: operands of a product at the
    example's sizes, which choose its default configuration; else loops, with symbols in them."""
    main = node.members[0]
    name = op_name(node, lowered)
    if isinstance(main, Contraction):
        return f"{name}({_operands(node, main, lowered)}) {_operand_type(node).label}"
    if isinstance(main, Attention):
        sizes = f"{numel(main.batch)}x{main.row.size}x{main.depth.size}"
        kind = "causal " if main.causal else "masked " if main.mask is not None else ""
        against = f"{main.column.size}x{main.value_depth.size}"
        return f"{name}({sizes}, {against}) {kind}{_operand_type(node).label}"
    nests = [member.nest for member in node.members]
    outer, inner = next((nest for nest in nests if nest[1]), nests[-1])
    loops = f"{numel(outer)}x{numel(inner)}" if inner else str(numel(outer))
    return f"{name}({loops}) {lowered.buffers[node.writes[0]].dtype.label}"


def _operands(node: SchedulerNode, main: Contraction, lowered: Lowered) -> str:
    hints = {name: info.hint for name, info in lowered.graph.symbols.items()}
    columns = [member.n for member in node.members if isinstance(member, Contraction)]
    m, k = evaluate(numel(main.m), hints), evaluate(numel(main.k), hints)
    n = sum(evaluate(numel(axes), hints) for axes in columns)
    batch = f"{evaluate(numel(main.batch), hints)}x" if main.batch else ""
    return f"{batch}{m}x{k}, {batch}{k}x{n}"


def _operand_type(node: SchedulerNode) -> DType:
    """The widest of the types that are multiplied."""
    operands = [operand for member in node.members for operand in member.matrix_operands]
    return max((operand.dtype for operand in operands), key=lambda dtype: dtype.itemsize)
