"""The title of a problem in the autotune log: ``addmm(2240x256, 256x2048) f16``."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.codegen.problem import op_name
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Attention, Contraction, Lowered, numel


def title(node: SchedulerNode, lowered: Lowered, bindings: Bindings | None = None) -> str:
    """Return the op with its operands' sizes and its type.

    The sizes are those of ``bindings``, which a run measures. Without them, operands of a product
    are at the example's sizes, which choose its default configuration, and loops keep their
    symbols.
    """
    main = node.members[0]
    name = op_name(node, lowered)
    if isinstance(main, Contraction):
        example_sizes = {name: info.hint for name, info in lowered.graph.symbols.items()}
        sizes = example_sizes | dict(bindings or {})
        columns = [member.n for member in node.members if isinstance(member, Contraction)]
        m, k = evaluate(numel(main.m), sizes), evaluate(numel(main.k), sizes)
        n = sum(evaluate(numel(axes), sizes) for axes in columns)
        batch = f"{evaluate(numel(main.batch), sizes)}x" if main.batch else ""
        return f"{name}({batch}{m}x{k}, {batch}{k}x{n}) {_operand_type(node).label}"
    numbers = bindings or {}
    if isinstance(main, Attention):
        query_sizes = (numel(main.batch), main.row.size, main.depth.size)
        qualifiers = "causal " if main.causal else "masked " if main.mask is not None else ""
        qualifiers += "" if main.cap is None else "capped "
        value_sizes = (main.column.size, main.value_depth.size)
        operands = f"{_format_sizes(query_sizes, numbers)}, {_format_sizes(value_sizes, numbers)}"
        return f"{name}({operands}) {qualifiers}{_operand_type(node).label}"
    nests = [member.nest for member in node.members]
    outer_axes, inner_axes = next((nest for nest in nests if nest[1]), nests[-1])
    loops = [numel(outer_axes), *([numel(inner_axes)] if inner_axes else [])]
    return f"{name}({_format_sizes(loops, numbers)}) {lowered.buffers[node.writes[0]].dtype.label}"


def _format_sizes(sizes: Iterable[Expr], bindings: Bindings) -> str:
    """Format sizes as ``16x64``; a data-dependent or unbound size keeps its symbols."""
    return "x".join(
        str(
            evaluate(size, bindings) if {s.name for s in size.free_symbols} <= {*bindings} else size
        )
        for size in sizes
    )


def _operand_type(node: SchedulerNode) -> DType:
    """Return the widest of the multiplied types."""
    operands = [operand for member in node.members for operand in member.matrix_operands]
    return max((operand.dtype for operand in operands), key=lambda dtype: dtype.itemsize)
