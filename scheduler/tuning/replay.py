"""Recorded kernels and their current call sites: what a new measurement needs from a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.codegen.benchmark_request import BenchmarkRequest
from scheduler.codegen.problem import problem_of
from scheduler.codegen.recorded_call import RecordedCall
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import Lowered


@dataclass(frozen=True)
class GraphNodeRef:
    """A node that had the problem when its graph was imported; ``graph`` is its file's hash."""

    graph: str
    graph_bytes: int
    node: str


@dataclass(frozen=True)
class RecordedUse:
    """A node's call of a kernel as it was recorded, with the names of the buffers that the node
    read and wrote, in order."""

    place: GraphNodeRef
    args: tuple[Mapping[str, Any], ...]
    call: Mapping[str, str]
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class CallSite:
    """A node of the problem as it is scheduled now, at the requested sizes."""

    place: GraphNodeRef
    node: SchedulerNode
    lowered: Lowered
    bindings: dict[str, int]

    def request(self, kernel: str, uses: Sequence[RecordedUse], target: str) -> BenchmarkRequest:
        """Return the kernel's call here: this node's own use if ``uses`` has it, else the first.
        ``uses`` is not empty. Raises ``UserError`` if it does not fit."""
        use = next((use for use in uses if use.place == self.place), uses[0])
        buffers = [*self.node.reads, *self.node.writes]
        buffer_names = dict(zip(use.buffers, buffers, strict=True))
        call = RecordedCall(kernel, use.args, use.call, buffer_names)
        return call.request(target, self.bindings, self.lowered.buffers)


def find_call_site(
    references: Sequence[GraphNodeRef],
    problem: str,
    sizes: Mapping[str, int],
    schedule_of: Callable[[GraphNodeRef], Schedule | None],
) -> CallSite:
    """Return the first reference that has the problem with that hash now; ``schedule_of`` returns
    None if the file is gone. Raises ``UserError`` if no reference has it."""
    for reference in references:
        schedule = schedule_of(reference)
        matching_nodes = (
            [node for node in schedule.nodes if node.name == reference.node] if schedule else []
        )
        if schedule is None or not matching_nodes:
            continue
        node, lowered = matching_nodes[0], schedule.lowered
        if problem_of(node, lowered).digest == problem:
            symbols = lowered.graph.symbols
            bindings = {name: sizes.get(name, info.hint) for name, info in symbols.items()}
            return CallSite(reference, node, lowered, bindings)
    raise UserError(
        "the problem no longer exists: this version of Kiln generates other kernels, or the model"
        " was deleted"
    )
