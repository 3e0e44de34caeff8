"""What the first page says to a newcomer: the kinds of figures here, where to start reading, and
the work in progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen_app.graphs.pages.graphs.query import GraphRow
from codegen_app.site.pages.overview.changes import OpenAlert
from codegen_app.tuning.pages.runs.query import RunRow, is_open
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.track.evidence import Cause


@dataclass(frozen=True)
class WorkInProgress:
    """A graph that is being prepared or compiled, or an open run: its page, and how far it is."""

    subject: str
    url: str
    state: str
    text: str


def work_in_progress(
    graphs: Sequence[GraphRow], runs: Sequence[RunRow], *, is_worker_online: bool
) -> tuple[WorkInProgress, ...]:
    """Return the open work of these graphs and runs, the oldest first; all of it is queued while no
    worker is online."""
    rows = []
    for graph in reversed(graphs):
        if text := _preparation(graph):
            is_running = is_worker_online and graph.state != State.QUEUED
            state = State.RUNNING if is_running else State.QUEUED
            rows.append(WorkInProgress(graph.name, graph.url, state, text))
    for run in reversed(runs):
        if is_open(run.state):
            progress = run.progress
            text = f"{progress.done} of {progress.total} candidates are {run.done_word}"
            text = text if run.planned else "waits until the graph is prepared"
            subject = f"run {run.id} of {run.graph}, {run.device}"
            state = State(run.state) if is_worker_online else State.QUEUED
            rows.append(WorkInProgress(subject, run.url, state, text))
    return tuple(rows)


def _preparation(graph: GraphRow) -> str:
    """Return what is being done for a graph; "" if nothing is."""
    if graph.state in OPEN_STATES:
        is_queued = graph.state == State.QUEUED
        return "queued for preparation" if is_queued else "kernels are being generated"
    if graph.state == State.DONE and (pending := sum(row.open for row in graph.builds)):
        total = sum(row.total for row in graph.builds)
        return f"{total - pending} of {total} builds are finished"
    return ""


def explained_regression(regressions: Sequence[OpenAlert]) -> OpenAlert | None:
    """Return the first regression with a known cause, of those that have not recovered; else the
    first of these, else None."""
    current = [alert for alert in regressions if not alert.recovered]
    explained = [alert for alert in current if alert.cause not in ("", Cause.UNKNOWN)]
    return next(iter((*explained, *current)), None)
