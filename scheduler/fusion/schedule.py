"""From operations to kernels-to-be, in execution order."""

from __future__ import annotations

from scheduler.fusion.groups import group_fn, kind_of, make_node
from scheduler.fusion.memory import plan, with_frees
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import Lowered


def schedule(lowered: Lowered, *, fuse: bool = True) -> Schedule:
    """Groups of operations that become one kernel each.

    With ``fuse`` False every operation is a kernel of its own: the schedule to compare with.
    """
    positions = {node.name: position for position, node in enumerate(lowered.graph.nodes)}
    nodes: list[SchedulerNode] = [
        make_node([op], kind_of(op), group_fn(op), positions) for op in lowered.operations
    ]
    ordered = with_frees(nodes, lowered.buffers)
    hints = {name: info.hint for name, info in lowered.graph.symbols.items()}
    storage, pools = plan(ordered, lowered.buffers, hints)
    return Schedule(lowered, ordered, (), storage, pools)
