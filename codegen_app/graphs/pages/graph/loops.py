"""Loops of a schedule, from the nodes where they begin and end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen_app.graphs.models import TemplateNode
from scheduler.ir.operations import END_SUFFIX


@dataclass(frozen=True)
class LoopRow:
    """A loop: its begin's name and page, and the nodes that run at each step: those between two
    positions."""

    name: str
    url: str
    op: str
    first: int
    last: int


def find_loops(nodes: Iterable[TemplateNode]) -> tuple[LoopRow, ...]:
    """Return the loops among the nodes of one graph, outer ones before nested ones."""
    marks = {node.name: node for node in nodes if node.kind == TemplateNode.LOOP}
    loops = [
        LoopRow(
            name=name,
            url=node.get_absolute_url(),
            op=node.op,
            first=node.position,
            last=marks[name + END_SUFFIX].position,
        )
        for name, node in marks.items()
        if name + END_SUFFIX in marks
    ]
    return tuple(sorted(loops, key=lambda loop: loop.first))


def innermost_loop(loops: Sequence[LoopRow], position: int) -> LoopRow | None:
    """Return the innermost loop that runs the node at a position at each step, if any."""
    around = [loop for loop in loops if loop.first < position < loop.last]
    return around[-1] if around else None
