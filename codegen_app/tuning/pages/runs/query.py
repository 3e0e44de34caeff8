"""The list of tuning runs, and the progress of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.utils import timezone

from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.tuning.queries.ledger import candidate_outcome
from codegen_app.web.row import build_row
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.tuning.ledger import CandidateState

MAX_RUNS = 200  # runs that are listed


@dataclass(frozen=True)
class Progress:
    """Candidates of a run by outcome. A rule ``rejected`` the configuration of some, which was no
    work and counts neither in ``total`` nor in a share; ``failed`` ones could not be compiled or
    measured."""

    total: int
    done: int
    failed: int
    rejected: int
    cancelled: int
    running: int
    queued: int

    @property
    def worked(self) -> int:
        """The number of finished candidates."""
        return self.done + self.failed

    @property
    def left(self) -> int:
        """The number of candidates still to be measured, including those being measured."""
        return self.running + self.queued


@dataclass(frozen=True)
class RunRow:
    """One run in a list, with its state and progress."""

    id: int
    url: str
    graph: str
    graph_url: str
    graph_state: str
    node: str
    device: str
    target: str
    state: str
    bindings: Mapping[str, int]
    note: str
    progress: Progress
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str = ""  # for a finished run: what was not measured and why
    planned: bool = True
    requested_by: str = ""
    why: str = ""
    priority: int = 0
    budget: str = ""
    strategy: str = ""  # for a run that searches
    time_left_s: float | None = None
    share: float = 0.0
    modelled: bool = False  # its times are modelled: nothing was measured
    imported: str = ""  # device, driver, date and commit of a run on another installation

    @property
    def share_in_words(self) -> str:
        """The share, and the state if the run is over."""
        how_far = f"{100 * self.share:.0f} % of the work is done"
        return how_far if is_open(self.state) else f"{self.state}: {how_far}"

    @property
    def duration_s(self) -> float | None:
        """The seconds from its start to its end; None if it did not start or is not over."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()

    @property
    def no_candidates(self) -> str:
        """Why no candidates are listed, or not yet, in a sentence."""
        if self.planned:
            return "No candidates."
        if not is_open(self.state):
            return f"The run was {self.state} before its candidates were listed."
        if self.graph_state != State.DONE:
            return "Waiting for the graph, which is being prepared. Its candidates are listed then."
        return "Waiting to be planned: a worker lists the candidates."

    @property
    def measured_on(self) -> str:
        """The choice of the tuning form that measures where this run did."""
        return self.device if self.modelled else self.target

    @property
    def done_word(self) -> str:
        """The participle for its candidates: modelled or measured."""
        return "modelled" if self.modelled else "measured"


@dataclass(frozen=True)
class RunList:
    """The page of the latest runs."""

    runs: tuple[RunRow, ...]

    @property
    def by_state(self) -> str:
        """The numbers of the listed runs by state, those that are not over first."""
        counts = Counter(row.state for row in self.runs)
        states = sorted(counts, key=lambda state: (not is_open(state), -counts[state]))
        return ", ".join(f"{counts[state]} {state}" for state in states)

    @property
    def is_cut(self) -> bool:
        """Whether there may be more than are listed."""
        return len(self.runs) >= MAX_RUNS


def run_list(limit: int = MAX_RUNS) -> RunList:
    """Return the latest runs (2 queries)."""
    return RunList(run_rows(TuningRun.objects.all()[:limit]))


def run_rows(runs: QuerySet[TuningRun]) -> tuple[RunRow, ...]:
    """Return rows for these runs (2 queries)."""
    spent = TuningTask.objects.filter(run=OuterRef("pk")).order_by().values("run")
    listed = list(
        runs.select_related("graph", "template_node", "requested_by", "imported")
        .defer("graph__wrapper", "graph__decisions", "graph__tensors", "template_node__rejected")
        .annotate(spent_s=Subquery(spent.annotate(seconds=Sum("spent_s")).values("seconds")))
    )
    states: dict[int, Counter[str]] = defaultdict(Counter)
    by_rule: Counter[int] = Counter()
    counts = (
        Candidate.objects.filter(task__run__in=[run.pk for run in listed])
        .order_by()
        .values_list("task__run", "state", "stage")
        .annotate(Count("pk"))
    )
    for run_id, state, stage, count in counts:
        states[run_id][state] += count
        if candidate_outcome(state, stage) == CandidateState.REJECTED:
            by_rule[run_id] += count
    rows: list[RunRow] = []
    for run in listed:
        progress = _progress(states[run.pk], by_rule[run.pk])
        limits = (
            (run.budget_s, "s"),
            (run.max_compiles, "compiles"),
            (run.max_measurements, "measurements"),
        )
        row = build_row(
            RunRow,
            run,
            url=run.get_absolute_url(),
            graph=run.graph.name,
            graph_url=run.graph.get_absolute_url(),
            graph_state=run.graph.state,
            node=run.template_node.name if run.template_node else "",
            progress=progress,
            planned=run.planned_at is not None,
            requested_by=run.requested_by.get_username() if run.requested_by else "",
            budget=", ".join(f"{limit:g} {unit}" for limit, unit in limits if limit is not None),
            strategy=run.strategy if run.has_budget else "",
            time_left_s=_time_left_s(run, progress),
            share=_share(run, progress),
            modelled=run.is_modelled,
            imported=str(getattr(run, "imported", "")),
        )
        rows.append(row)
    return tuple(rows)


def _progress(states: Counter[str], by_rule: int) -> Progress:
    return Progress(
        total=states.total() - by_rule,
        done=states[State.DONE],
        failed=states[State.REJECTED] + states[State.QUARANTINED] - by_rule,
        rejected=by_rule,
        cancelled=states[State.CANCELLED],
        running=states[State.RUNNING],
        queued=states[State.QUEUED],
    )


def _share(run: TuningRun, progress: Progress) -> float:
    """Return the finished part of a run's work, 0 to 1: of its budget if it has one, else of its
    candidates.

    Rejection by a rule is not work, and dropped candidates were not done: for a cancelled or failed
    run the share is the part that was done.
    """
    if run.state == State.DONE:
        return 1.0
    spent = getattr(run, "spent_s", None) or 0.0
    limits = (
        (spent, run.budget_s),
        (progress.worked, run.max_measurements),
        (progress.worked, run.max_compiles),
    )
    parts = [done / limit for done, limit in limits if limit]
    if not parts:
        known = progress.worked + progress.left + progress.cancelled
        parts = [progress.worked / known if known else 0.0]
    return min(1.0, round(max(parts), 3))


def _time_left_s(run: TuningRun, progress: Progress) -> float | None:
    """Return the remaining seconds: of the budget, or estimated from the pace so far."""
    if run.state not in OPEN_STATES or run.started_at is None:
        return None
    if run.budget_s is not None:
        return max(0.0, run.budget_s - (getattr(run, "spent_s", None) or 0.0))
    if run.has_budget or not progress.worked:
        return None
    elapsed_s = (timezone.now() - run.started_at).total_seconds()
    return elapsed_s / progress.worked * progress.left


def is_open(state: str) -> bool:
    """Whether a run in this state can still change, so that its page polls."""
    return state in OPEN_STATES
