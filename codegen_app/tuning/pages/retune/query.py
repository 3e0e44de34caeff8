"""The page that confirms a tuning request: its subjects, and what would measure them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count

from codegen_app.graphs.models import TemplateNode
from codegen_app.tuning.pages.runs.queue import open_runs, runs_ahead
from codegen_app.tuning.services.ledger import MODELLED
from codegen_app.tuning.services.retuning import MAX_RUNS, Subject
from codegen_app.tuning.services.run_devices import measures_times
from codegen_app.workers.models import Worker
from scheduler.targets.modelled import is_modelled


@dataclass(frozen=True)
class SubjectRow:
    """A graph or one of its nodes, the subject of a run, with the number of its problems."""

    graph: str
    graph_url: str
    node: str
    node_url: str
    op: str
    problems: int


@dataclass(frozen=True)
class TargetChoice:
    """A target or modelled device; ``is_measured``: a live worker measures on it now. ``workers``
    are these workers with their devices, ``ahead`` the runs that they do first."""

    name: str
    is_measured: bool
    workers: tuple[str, ...]
    ahead: str


@dataclass(frozen=True)
class RetunePage:
    """The subjects, the available targets, and the maximum number of runs per request."""

    subjects: tuple[SubjectRow, ...]
    targets: tuple[TargetChoice, ...]
    most_runs: int

    @property
    def problems(self) -> int:
        """The number of problems that the runs on one target tune."""
        return sum(subject.problems for subject in self.subjects)


def retune_page(subjects: Sequence[Subject], targets: Iterable[str]) -> RetunePage:
    """Return the page for these subjects, with each target that can be chosen (3 queries)."""
    graphs = TemplateNode.objects.filter(graph__in=[subject.graph.pk for subject in subjects])
    counts = graphs.order_by().values_list("graph").annotate(Count("problem", distinct=True))
    problems = dict(counts)
    rows = [
        SubjectRow(
            graph=str(subject.graph),
            graph_url=subject.graph.get_absolute_url(),
            node=subject.node.name if subject.node else "",
            node_url=subject.node.get_absolute_url() if subject.node else "",
            op=subject.node.op if subject.node else "",
            problems=1 if subject.node else problems.get(subject.graph.pk, 0),
        )
        for subject in subjects
    ]
    workers = [row for row in Worker.objects.order_by("name") if row.is_alive]
    return RetunePage(tuple(rows), _target_choices(targets, workers), MAX_RUNS)


def _target_choices(names: Iterable[str], workers: Sequence[Worker]) -> tuple[TargetChoice, ...]:
    """Return each target with the live workers that measure on it (1 query)."""
    runs = open_runs()
    choices = []
    for name in names:
        queue = MODELLED if is_modelled(name) else name
        serving = [row for row in workers if f"measure.{queue}" in row.queues]
        choices.append(
            TargetChoice(
                name=name,
                is_measured=bool(serving),
                workers=tuple(_worker_text(row, name) for row in serving),
                ahead=runs_ahead(runs, queue).text,
            )
        )
    return tuple(choices)


def _worker_text(worker: Worker, target: str) -> str:
    """Return a worker's name with its devices of the target, and that it takes no work, if so."""
    devices = [
        device["name"]
        for device in worker.devices
        if device["target"] == target and measures_times(target, device["id"])
    ]
    queue = MODELLED if is_modelled(target) else target
    paused = "" if worker.accepts(f"measure.{queue}") else ", paused"
    on = f"{', '.join(dict.fromkeys(devices))} on " if devices else ""
    return f"{on}{worker.name}{paused}"
