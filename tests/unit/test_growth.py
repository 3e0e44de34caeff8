"""Work grows with a model and no faster: counted in calls of functions, not in seconds.

``python -m tests.benchmarks.growth`` has the seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

import pytest

from scheduler import pipeline
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.problem import problem_of
from scheduler.codegen.title import title
from scheduler.ir.graph import Graph, Node
from scheduler.ir.serialize import graph_to_json
from scheduler.targets import find
from tests.support import long_models

SHORT, LONG = 40, 240
MOST = 1.5  # times as many calls for each node of the long one


def _made(graph: Graph) -> None:
    graph_to_json(graph)
    plan = pipeline.schedule(pipeline.lower(graph))
    wrapper_of(pipeline.generate(plan, [find("gfx942")]).manifest())
    for node in plan.nodes:
        problem_of(node, plan.lowered)
        title(node, plan.lowered)


def _calls(graph: Graph) -> int:
    """Calls of functions, resumed generators among them, from the graph to its sources."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        _made(graph)
    finally:
        sys.setprofile(before)
    return count


class _Counted(tuple[Node, ...]):
    """Nodes that count how often somebody goes through all of them."""

    passes = 0

    def __iter__(self) -> Iterator[Node]:
        type(self).passes += 1
        return super().__iter__()


def _passes(graph: Graph) -> int:
    _Counted.passes = 0
    _made(replace(graph, nodes=_Counted(graph.nodes)))
    return _Counted.passes


def test_no_kernel_looks_at_all_nodes_of_the_model() -> None:
    """For its name, say."""
    assert _passes(long_models.products(SHORT)) == _passes(long_models.products(SHORT * 2))


@pytest.mark.full(but=["chain"])
@pytest.mark.parametrize("model", [long_models.chain, long_models.products, long_models.wide])
def test_a_model_six_times_as_long_takes_six_times_as_many_calls(
    model: Callable[[int], Graph],
) -> None:
    _made(model(SHORT))  # what is made once in a process
    short, long = _calls(model(SHORT)), _calls(model(LONG))
    assert long / LONG < MOST * short / SHORT
