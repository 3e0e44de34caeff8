"""Runs ops without a kernel on the host, through the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.bundle.execute import NoReferenceError, RunExtern
from scheduler.bundle.manifest import ExternEntry
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.bindings import Bindings
from scheduler.ir.index.functions import evaluate as extent
from scheduler.ir.operations import buffer_size_symbol
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.storage import Array
from scheduler.ir.values import loads
from scheduler.lowering.errors import node_location
from scheduler.lowering.interpret import view_value
from scheduler.reference import evaluate, read_sizes, symbolic_values


def extern_runner(plan: Schedule) -> RunExtern:
    """Return a function that computes an extern of this schedule from the buffers that it reads
    and the sizes known so far.

    It raises ``NoReferenceError`` naming the node if the op has no reference either.
    """
    lowered = plan.lowered
    nodes = lowered.graph.all_nodes_by_name
    externs = {extern.outputs: extern for group in plan.nodes for extern in group.externs}

    def run(
        entry: ExternEntry, buffers: Mapping[str, Array], bindings: Bindings
    ) -> Mapping[str, Array]:
        extern = externs.get(entry.outputs)
        if extern is None or extern.node != entry.node:
            raise UserError(f"the extern {entry.node} is not in the bundle's graph")
        node = nodes[extern.node]
        buffers_read = {
            load.buffer for view in extern.inputs.values() for load in loads(view.value)
        }
        memory = {name: buffers[name] for name in buffers_read}
        values: dict[str, object] = {**symbolic_values(lowered.graph, bindings)}
        for name, view in extern.inputs.items():
            meta = lowered.graph.tensors.get(name)
            value = view_value(view, memory, lowered, bindings)
            if meta is None:  # a number
                values[name] = value.item()
            else:
                values[name] = value.reshape(tuple(extent(size, bindings) for size in meta.size))
        try:
            results = evaluate(node, values, bindings, graph=lowered.graph)
        except UnsupportedOpError as error:
            raise NoReferenceError(
                f"{node.target}, which has neither a kernel nor a reference: {node_location(node)}"
                f" cannot be run: no kernel ({extern.reason}), and no reference ({error.reason})"
            ) from None
        count = len(node.outputs)
        sizes = read_sizes(lowered.graph, results)
        return {
            buffer: np.asarray(results[output])
            for output, buffer in zip(node.outputs, extern.outputs[:count], strict=True)
        } | {
            buffer: np.asarray(sizes[buffer_size_symbol(buffer)])
            for buffer in extern.outputs[count:]
        }

    return run
