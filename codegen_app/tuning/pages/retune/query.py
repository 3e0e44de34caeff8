"""The page that confirms a tuning request: its subjects and the available targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen_app.graphs.models import Graph, TemplateNode


@dataclass(frozen=True)
class SubjectRow:
    """A graph or one of its nodes, the subject of a run."""

    graph: str
    graph_url: str
    node: str
    node_url: str
    op: str


@dataclass(frozen=True)
class TargetChoice:
    """A target or modelled device; ``is_measured``: a live worker measures on it now."""

    name: str
    is_measured: bool


@dataclass(frozen=True)
class RetunePage:
    """The subjects, the available targets, and the maximum number of runs per request."""

    subjects: tuple[SubjectRow, ...]
    targets: tuple[TargetChoice, ...]
    most_runs: int


def retune_page(
    subjects: Iterable[tuple[Graph, TemplateNode | None]],
    measured_on: Iterable[tuple[str, bool]],
    most_runs: int,
) -> RetunePage:
    """Return the page for these subjects, with each choice of the form and whether it is measured
    on now."""
    rows = [
        SubjectRow(
            graph=str(graph),
            graph_url=graph.get_absolute_url(),
            node=node.name if node else "",
            node_url=node.get_absolute_url() if node else "",
            op=node.op if node else "",
        )
        for graph, node in subjects
    ]
    choices = tuple(TargetChoice(name, is_measured) for name, is_measured in measured_on)
    return RetunePage(subjects=tuple(rows), targets=choices, most_runs=most_runs)
