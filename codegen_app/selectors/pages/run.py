"""One tuning run: its progress, its best so far and its ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.urls import reverse

from codegen_app.models import Candidate, State, TuningRun
from codegen_app.selectors.languages import LanguageRow, Tried, by_language
from codegen_app.selectors.ledger import Curve, modelled_of
from codegen_app.selectors.ledger import curves as best_so_far
from codegen_app.selectors.measured_row import MeasuredRow, metrics_of
from codegen_app.selectors.pages.runs import RunRow, run_rows
from scheduler.codegen.languages import language_of
from scheduler.tuning.modelled import Modelled, devices_of


@dataclass(frozen=True)
class LedgerRow(MeasuredRow):
    """What became of one candidate."""

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
    modelled: Modelled | None = None  # what the model says of it

    @property
    def modelled_ns(self) -> float | None:
        """The middle of its modelled band."""
        return None if self.modelled is None else self.modelled.time_ns.mid


@dataclass(frozen=True)
class Best(MeasuredRow):
    """The kernel of one problem that was chosen, or the fastest so far; ``languages`` has the
    fastest of each language where there are several."""

    node: str
    node_url: str
    problem: str
    language: str
    kernel: str
    kernel_url: str
    measured: int
    chosen: bool
    modelled: Modelled | None
    languages: tuple[LanguageRow, ...]


@dataclass(frozen=True)
class RunLink:
    """Another run, and of how many of this one's problems it said what is measured first."""

    id: int
    url: str
    device: str
    problems: int


@dataclass(frozen=True)
class RunPage:
    """One run with everything that was tried."""

    run: RunRow
    best: tuple[Best, ...]
    ledger: tuple[LedgerRow, ...]
    curves: tuple[Curve, ...]
    waiting: tuple[str, ...] = ()  # why builds and problems of it are tried again later
    begun_with: tuple[RunLink, ...] = ()  # runs whose modelled times say what is measured first

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its candidates; none where there is but one."""
        found = sorted({row.language for row in self.ledger if row.language})
        return tuple(found) if len(found) > 1 else ()

    @property
    def emulated(self) -> bool:
        """Whether its times are the emulation's: a run has one device."""
        return any(row.emulated for row in self.ledger)

    @property
    def kind(self) -> str:
        """What its times are: "emulated", "modelled", "" for a device's own."""
        return "modelled" if self.run.modelled else "emulated" if self.emulated else ""

    @property
    def modelled_device(self) -> str:
        """The devices whose model the modelled times are of."""
        return ", ".join(devices_of(row.modelled for row in self.ledger))

    @property
    def has_modelled(self) -> bool:
        """Whether a candidate has a modelled time, in a run of those or beside a measured one."""
        return any(row.modelled is not None for row in self.ledger)


def run_page(pk: int) -> RunPage:
    """One run (3 queries); raises ``TuningRun.DoesNotExist``."""
    rows = run_rows(TuningRun.objects.filter(pk=pk))
    if not rows:
        raise TuningRun.DoesNotExist(f"there is no tuning run {pk}")
    candidates = (
        Candidate.objects.filter(task__run=pk)
        .select_related(
            *("task__run", "task__problem", "task__template_node", "task__begins_with__run"),
            *("kernel", "result"),
        )
        .defer("kernel__source", "detail", "task__template_node__rejected")
        .annotate(build_state=F("build__state"), build_reason=F("build__reason"))
        .order_by("task__template_node__position", "position")
    )
    ledger = tuple(_ledger_row(candidate) for candidate in candidates)
    curves = best_so_far(candidates[0].task.run, candidates) if ledger else ()
    waiting, begun = _waiting(candidates), _begun_with(candidates)
    return RunPage(rows[0], _best(ledger), ledger, curves, waiting, begun)


def _begun_with(candidates: Iterable[Any]) -> tuple[RunLink, ...]:
    tasks = {row.task for row in candidates}
    earlier = Counter(task.begins_with.run for task in tasks if task.begins_with is not None)
    return tuple(
        RunLink(run.pk, run.get_absolute_url(), run.device, count)
        for run, count in sorted(earlier.items(), key=lambda item: item[0].pk)
    )


def _waiting(candidates: Iterable[Any]) -> tuple[str, ...]:
    """Each reason once, with how many it holds up."""
    tasks = {row.task for row in candidates}
    reasons = Counter(task.reason for task in tasks if task.state == State.QUEUED and task.reason)
    lines = [
        f"{_counted(n, 'problem waits', 'problems wait')}: {why}" for why, n in reasons.items()
    ]
    builds = {
        row.build_id: row.build_reason
        for row in candidates
        if row.build_state == State.QUEUED and row.build_reason
    }
    for why, n in Counter(builds.values()).most_common(3):
        lines.append(f"{_counted(n, 'build waits', 'builds wait')}: {why}")
    return tuple(lines)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _ledger_row(candidate: Candidate) -> LedgerRow:
    kernel, result, node = candidate.kernel, candidate.result, candidate.task.template_node
    return LedgerRow(
        id=candidate.pk,
        node=node.name,
        node_url=node.get_absolute_url(),
        problem=str(candidate.task.problem),
        language=language_of(kernel.source_file) if kernel else "",
        kernel=kernel.name if kernel else "",
        kernel_url=reverse("kernel", args=[kernel.name]) if kernel else "",
        config=candidate.config,
        state=candidate.state,
        stage=candidate.stage,
        reason=candidate.reason,
        metrics=metrics_of(result),
        check_ratio=result.check_ratio if result else None,
        emulated=bool(result and result.emulated),
        chosen=candidate.chosen,
        tied=candidate.tied,
        modelled=modelled_of(candidate),
    )


def _tried(row: LedgerRow) -> tuple[Tried, str]:
    one = Tried(
        language=row.language,
        kernel=row.kernel,
        url=row.kernel_url,
        metrics=row.metrics,
        emulated=row.emulated,
    )
    return one, f"{row.stage}: {row.reason}" if row.stage else ""


def _is_modelled(row: LedgerRow) -> bool:
    return row.state == State.DONE and row.modelled is not None and not row.modelled.obstacle


def _best(ledger: tuple[LedgerRow, ...]) -> tuple[Best, ...]:
    """The fastest candidate of each problem, in the order of the graph."""
    by_problem: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
    for row in ledger:
        by_problem[row.node_url, row.problem].append(row)
    best = []
    for (node_url, problem), of_problem in by_problem.items():
        rows = [row for row in of_problem if row.median_ns is not None]
        if not rows:  # in a run of modelled times there are none
            rows = [row for row in of_problem if _is_modelled(row)]
        if not rows:
            continue
        row = min(rows, key=lambda r: (not r.chosen, r.median_ns or r.modelled_ns or 0.0))
        best.append(
            Best(
                node=row.node,
                node_url=node_url,
                problem=problem,
                language=row.language,
                kernel=row.kernel,
                kernel_url=row.kernel_url,
                metrics=row.metrics,
                measured=len(rows),
                emulated=row.emulated,
                chosen=row.chosen,
                modelled=row.modelled,
                languages=by_language(_tried(one) for one in of_problem if one.language),
            )
        )
    return tuple(best)
