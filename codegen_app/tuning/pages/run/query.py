"""The page of a tuning run: its progress, its best so far and its ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Prefetch, Q

from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.tuning.models import Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.pages.explorer.model import Explorer
from codegen_app.tuning.pages.run.gains import Gain, ProblemGain, run_gains
from codegen_app.tuning.pages.run.unserved_queues import unserved_queues, wait_reasons
from codegen_app.tuning.pages.runs.query import RunRow, run_rows
from codegen_app.tuning.pages.runs.queue import open_runs, runs_ahead
from codegen_app.tuning.queries.languages import LanguageRow, TriedCandidate, language_rows
from codegen_app.tuning.queries.ledger import (
    Curve,
    candidate_outcome,
    elapsed_s,
    modelled_result,
    trial_orders,
)
from codegen_app.tuning.queries.measured_row import MeasuredRow, metrics_of
from codegen_app.tuning.queries.selection_uses import SelectionUse, selection_uses
from codegen_app.tuning.queries.serving import is_in_bucket
from codegen_app.tuning.services.selection_policy import FIRST, KEPT
from codegen_app.web.row import build_row
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.codegen.languages import language_of
from scheduler.tuning.ledger import best_so_far
from scheduler.tuning.modelled_time import ModelledTime, devices_of


@dataclass(frozen=True)
class LedgerRow(MeasuredRow):
    """The outcome of one candidate, with its time as this run measured it. ``serves``: it is now
    selected in the bucket in which it was measured."""

    id: int
    node: str
    node_url: str
    problem: str
    language: str
    kernel: str
    kernel_url: str
    config: Mapping[str, Any]
    state: str
    stage: str
    reason: str
    check_ratio: float | None
    chosen: bool
    tied: bool
    modelled: ModelledTime | None = None  # its modelled time
    serves: bool = False
    resource_use: ResourceUse | None = None
    outcome: str = ""  # its outcome in the ledger's terms
    order: int = 0  # position among the tried candidates of its problem, from 1; 0: not tried
    at_s: float | None = None  # when, in seconds from the start of the run

    @property
    def modelled_ns(self) -> float | None:
        """The middle of its modelled band."""
        return None if self.modelled is None else self.modelled.time_ns.mid

    @property
    def modelled_us(self) -> float | None:
        """The same in microseconds."""
        return None if self.modelled_ns is None else self.modelled_ns / 1000


@dataclass(frozen=True)
class BestKernel(MeasuredRow):
    """The selected kernel of one problem, or the fastest so far; ``languages`` has the fastest of
    each language if there are several. ``reason`` says what decided, and whether the kernel
    replaced the previous selection; ``serves`` whether it is selected now."""

    node: str
    node_url: str
    problem: str
    language: str
    kernel: str
    kernel_url: str
    measured: int
    chosen: bool
    modelled: ModelledTime | None
    languages: tuple[LanguageRow, ...]
    gain: ProblemGain
    reason: str = ""
    serves: bool = False


@dataclass(frozen=True)
class RunLink:
    """Another run, and the number of this run's problems whose measuring order it determined."""

    id: int
    url: str
    device: str
    problems: int


@dataclass(frozen=True)
class RunPage:
    """One run with all its candidates."""

    run: RunRow
    best: tuple[BestKernel, ...]
    ledger: tuple[LedgerRow, ...]
    curves: tuple[Curve, ...]
    over_previous: Gain | None  # of all problems whose selected kernels it replaced
    over_default: Gain | None  # of all problems whose default was measured, and is not the best
    ahead: str = ""  # for a queued run: the runs that its workers do first
    waiting: tuple[str, ...] = ()  # work that is not taken now or is retried later, and why
    begun_with: tuple[RunLink, ...] = ()  # runs whose modelled times set the measuring order
    uses: tuple[SelectionUse, ...] = ()  # where the selected kernels are in use
    explorer: Explorer | None = None  # its plots' data, as the address asks

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages of its candidates; none if there is only one."""
        languages = sorted({row.language for row in self.ledger if row.language})
        return tuple(languages) if len(languages) > 1 else ()

    @property
    def best_sum_ns(self) -> float | None:
        """The sum of the medians of the best of each problem; None if nothing was measured."""
        medians = [row.median_ns for row in self.best if row.median_ns is not None]
        return sum(medians) if medians else None

    @property
    def best_modelled_ns(self) -> float | None:
        """The sum of the lowest modelled times of each problem; None if nothing was modelled."""
        times = [row.modelled.time_ns.mid for row in self.best if row.modelled is not None]
        return sum(times) if times else None

    @cached_property
    def replaced(self) -> tuple[BestKernel, ...]:
        """The best kernels that replaced a selected one, and can be put back."""
        made = ((row, row.gain.selection) for row in self.best)
        return tuple(row for row, selection in made if selection and selection.can_be_put_back)

    @property
    def selected(self) -> int:
        """The number of problems whose best kernel is selected now."""
        return sum(row.serves for row in self.best)

    @property
    def has_reasons(self) -> bool:
        """Whether a comparison or a tie decided on a best kernel or its selection."""
        return any(row.reason not in ("", FIRST, KEPT) for row in self.best)

    @cached_property  # read for each row
    def emulated(self) -> bool:
        """Whether its times are the emulation's: a run has one device."""
        return any(row.emulated for row in self.ledger)

    @cached_property  # read for each row
    def kind(self) -> str:
        """The kind of its times: "emulated", "modelled", or "" for a device's own."""
        return "modelled" if self.run.modelled else "emulated" if self.emulated else ""

    @cached_property
    def modelled_device(self) -> str:
        """The devices of the modelled times."""
        return ", ".join(devices_of(row.modelled for row in self.ledger))

    @cached_property
    def has_modelled(self) -> bool:
        """Whether a candidate has a modelled time, in a modelled run or beside a measured one."""
        return any(row.modelled is not None for row in self.ledger)


def run_page(pk: int) -> RunPage:
    """Return one run (9 queries, 1 more while it is queued, 1 less once it is over). Raises
    ``TuningRun.DoesNotExist``."""
    rows = run_rows(TuningRun.objects.filter(pk=pk))
    if not rows:
        raise TuningRun.DoesNotExist(f"there is no tuning run {pk}")
    candidates = _candidates(pk)
    selections = _selections(rows[0], candidates)
    selected = _selected(candidates, selections)
    gains = run_gains(pk, candidates, selections)
    tried = trial_orders(candidates)
    nodes = {candidate.task.template_node for candidate in candidates}
    node_urls = {node: node.get_absolute_url() for node in nodes}
    # The emulation's instructions explain nothing of a GPU.
    target = "" if targets.find(rows[0].target).emulates else rows[0].target
    ledger: list[LedgerRow] = []
    for candidate in candidates:
        kernel, build, result = candidate.kernel, candidate.build, candidate.result
        node, order = candidate.task.template_node, tried.get(candidate.pk, 0)
        row = build_row(
            LedgerRow,
            candidate,
            node=node.name,
            node_url=node_urls[node],
            problem=str(candidate.task.problem),
            language=language_of(kernel.source_file) if kernel else "",
            kernel=kernel.name if kernel else "",
            kernel_url=kernel.page_url(node=node.pk, target=target) if kernel else "",
            metrics=metrics_of(result),
            check_ratio=result.check_ratio if result else None,
            emulated=bool(result and result.emulated),
            origin="",
            drift=None,
            modelled=modelled_result(candidate),
            serves=candidate.pk in selected,
            resource_use=resource_use(build.resources, build.target) if build else None,
            outcome=candidate_outcome(candidate.state, candidate.stage, modelled=result is None),
            order=order,
            at_s=elapsed_s(candidate) if order else None,
        )
        ledger.append(row)
    waiting = (*unserved_queues(rows[0], candidates), *wait_reasons(candidates))
    tasks = {candidate.task for candidate in candidates}
    earlier = Counter(task.begins_with.run for task in tasks if task.begins_with is not None)
    warm_starts = tuple(
        RunLink(run.pk, run.get_absolute_url(), run.device, count)
        for run, count in sorted(earlier.items(), key=lambda pair: pair[0].pk)
    )
    best, curves = _best_kernels(ledger, gains.by_candidate), _curves(ledger)
    of_run = [
        selected[row.pk]
        for row in candidates
        if row.pk in selected and row.result_id == selected[row.pk].result_id
    ]
    return RunPage(
        run=rows[0],
        best=best,
        ledger=tuple(ledger),
        curves=curves,
        over_previous=gains.over_previous,
        over_default=gains.over_default,
        ahead=_ahead(rows[0]),
        waiting=waiting,
        begun_with=warm_starts,
        uses=selection_uses(of_run),
    )


def _ahead(run: RunRow) -> str:
    """Return what a queued run waits behind (1 query; none once it runs)."""
    if run.state != State.QUEUED:
        return ""
    runs = open_runs()
    return next((runs_ahead(runs, row.queue, row).text for row in runs if row.id == run.id), "")


def _candidates(pk: int) -> list[Candidate]:
    """Return a run's candidates in the order of the graph, with the fields that its page reads (3
    queries). Shared rows are one object: thousands of candidates do not load their run and node
    again."""
    tasks = TuningTask.objects.select_related(
        "run", "problem", "template_node", "begins_with__run"
    ).defer("template_node__rejected")
    return list(
        Candidate.objects.filter(task__run=pk)
        .select_related("kernel", "result", "build")
        .prefetch_related(Prefetch("task", tasks), "result__environment")
        .defer(
            *("detail", "kernel__source", "kernel__args", "kernel__launches", "kernel__config"),
            *("kernel__created_at", "kernel__source_digest", "kernel__workspace_bytes"),
            *("build__log", "build__diagnostics", "build__detail", "build__flags"),
            *("build__created_at", "build__started_at", "build__finished_at"),
        )
        .order_by("task__template_node__position", "position")
    )


def _selections(run: RunRow, candidates: Iterable[Candidate]) -> list[Selection]:
    """Return the selections of the measured problems that are current or were replaced since the
    run was requested (1 query)."""
    # Filter by problem only: problems have few selections, and the candidates' kernels are
    # thousands.
    problems = {row.task.problem_id for row in candidates if row.result is not None}
    recent = Q(until__isnull=True) | Q(until__gte=run.created_at)
    rows = Selection.objects.filter(recent, problem__in=problems)
    return list(rows.select_related("problem", "result", "kernel").defer("kernel__source"))


def _selected(
    candidates: Iterable[Candidate], selections: Iterable[Selection]
) -> dict[int, Selection]:
    """Return the current selections, by candidate, of those that are selected in the bucket in
    which they were measured."""
    by_kernel: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for row in candidates:
        if row.kernel_id is not None and row.result is not None:
            by_kernel[row.task.problem_id, row.kernel_id].append(row)
    return {
        row.pk: selection
        for selection in selections
        if selection.until is None
        for row in by_kernel.get((selection.problem_id, selection.kernel_id), ())
        if row.kernel
        and row.build
        and row.result
        and is_in_bucket(selection, row.result, row.build, row.kernel)
    }


def _is_modelled(row: LedgerRow) -> bool:
    return row.state == State.DONE and row.modelled is not None and not row.modelled.obstacle


def _by_problem(ledger: Iterable[LedgerRow]) -> dict[tuple[str, str], list[LedgerRow]]:
    """Group the candidates by node and problem, in the order of the graph."""
    groups: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
    for row in ledger:
        groups[row.node_url, row.problem].append(row)
    return groups


def _curves(ledger: Iterable[LedgerRow]) -> tuple[Curve, ...]:
    """Return the best-so-far curve of each problem: of its candidates' medians, or of their
    modelled times in a modelled run."""
    curves: list[Curve] = []
    for (_, problem), rows in _by_problem(ledger).items():
        tried = sorted((row for row in rows if row.order), key=lambda row: row.order)
        times = []
        for row in tried:
            is_modelled = row.median_ns is None and _is_modelled(row)
            times.append((row.at_s or 0.0, row.modelled_ns if is_modelled else row.median_ns))
        if times:
            curves.append(Curve(rows[0].node, problem, best_so_far(times)))
    return tuple(curves)


def _best_kernels(
    ledger: Iterable[LedgerRow], gains: Mapping[int, ProblemGain]
) -> tuple[BestKernel, ...]:
    """Return the fastest candidate of each problem, in the order of the graph."""
    best = []
    for candidates in _by_problem(ledger).values():
        timed = [row for row in candidates if row.median_ns is not None]
        if not timed:  # a modelled run has no measurements
            timed = [row for row in candidates if _is_modelled(row)]
        if not timed:
            continue
        row = min(timed, key=lambda row: (not row.chosen, row.median_ns or row.modelled_ns or 0.0))
        tried = [
            (
                build_row(TriedCandidate, other, url=other.kernel_url),
                f"{other.stage}: {other.reason}" if other.stage else "",
            )
            for other in candidates
            if other.language
        ]
        languages = language_rows(tried)
        best.append(
            build_row(
                BestKernel,
                row,
                measured=len(timed),
                languages=languages,
                gain=gains.get(row.id, ProblemGain()),
            )
        )
    return tuple(best)
