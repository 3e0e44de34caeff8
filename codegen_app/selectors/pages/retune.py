"""What is pointed at to be tuned, and on which targets it can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen_app.services.retuning import MAX_RUNS, Subject


@dataclass(frozen=True)
class SubjectRow:
    """A graph, or one of its nodes, which a run would be about."""

    graph: str
    graph_url: str
    node: str
    node_url: str
    op: str


@dataclass(frozen=True)
class TunedOn:
    """A target or modelled device; ``is_measured``: a live worker measures on it now."""

    name: str
    is_measured: bool


@dataclass(frozen=True)
class RetunePage:
    """What would be tuned, where that can be, and how many runs may be asked for at once."""

    subjects: tuple[SubjectRow, ...]
    targets: tuple[TunedOn, ...]
    most_runs: int


def retune_page(subjects: Sequence[Subject], measured_on: Iterable[tuple[str, bool]]) -> RetunePage:
    """Of what is pointed at, with each choice of the form and whether it is measured on now."""
    return RetunePage(
        subjects=tuple(map(_row, subjects)),
        targets=tuple(TunedOn(*one) for one in measured_on),
        most_runs=MAX_RUNS,
    )


def _row(one: Subject) -> SubjectRow:
    node = one.node
    return SubjectRow(
        graph=str(one.graph),
        graph_url=one.graph.get_absolute_url(),
        node=node.name if node else "",
        node_url=node.get_absolute_url() if node else "",
        op=node.op if node else "",
    )
