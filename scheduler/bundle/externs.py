"""Runs on the host what no kernel was made for, through the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.bundle.execute import RunExtern
from scheduler.bundle.manifest import ExternEntry
from scheduler.fusion.nodes import Schedule
from scheduler.ir.bindings import Bindings
from scheduler.ir.operations import Extern
from scheduler.ir.storage import Array
from scheduler.lowering.interpret import interpret


def extern_runner(plan: Schedule, bindings: Bindings) -> RunExtern:
    """A function that computes an extern of this schedule from the buffers it reads."""
    externs = {
        member.node: member
        for node in plan.nodes
        for member in node.members
        if isinstance(member, Extern)
    }

    def run(entry: ExternEntry, buffers: Mapping[str, Array]) -> Mapping[str, Array]:
        return interpret(externs[entry.node], buffers, plan.lowered, bindings)

    return run
