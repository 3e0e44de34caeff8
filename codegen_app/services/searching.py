"""A run with a budget: the tuner searches what the generator offers, the rows keep what it finds.

Every candidate is recorded as soon as it is timed or lost, so that a task that another worker
takes over answers from the rows what was seen before, and measures only what was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.models import (
    OPEN_STATES,
    BenchmarkResult,
    Build,
    Candidate,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import builds, engine, kernels, ledger, outcomes, tuning, work
from codegen_app.services.remote_builds import RemoteBuilds
from scheduler import targets
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import default_plan
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.protocol import Sampler
from scheduler.build.process import Cancellation, Cancelled
from scheduler.codegen.caller import TemplateCaller
from scheduler.outcome import Rejected, Stage
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Board
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.contest import Setting
from scheduler.tuning.cost_model import speed_of_light_ns
from scheduler.tuning.judge import BenchJudge
from scheduler.tuning.known import Known, Shape
from scheduler.tuning.ledger import Entry, Fate
from scheduler.tuning.problems import find_problems
from scheduler.tuning.tuner import Event, ProblemResult, Tuner

_KNOWN_AT_MOST = 200
_LEAST_S = 0.01


def search(task: TuningTask, device: DeviceInfo, cancellation: Cancellation) -> None:
    """Do a claimed task of a run with a budget. Raises ``Cancelled``, ``LeaseLostError``."""
    _Search(task, device, cancellation).run()


class _Search:
    """One try of one task, on a device that this process has alone."""

    def __init__(self, task: TuningTask, device: DeviceInfo, cancellation: Cancellation) -> None:
        self._task = task
        self._run = task.run
        self._device = device
        self._cancellation = cancellation
        self._scheduled = engine.scheduled(self._run.graph.file.digest)
        (self._problem,) = find_problems(
            self._scheduled.schedule,
            self._scheduled.backend,
            targets.find(self._run.target),
            dict(self._run.bindings),
            [task.template_node.name],
        )
        self._places = {caller.name: i for i, caller in reversed(list(enumerate(self._callers)))}

    @property
    def _callers(self) -> tuple[TemplateCaller, ...]:
        return self._problem.callers

    def run(self) -> None:
        meter = Meter(share_of_budget(self._task))
        self._begin()
        lowered, board = self._scheduled.schedule.lowered, self._device.board
        judge = _RememberingJudge(
            _seen(self._task),
            self._device.id,
            targets.find(self._run.target),
            lowered,
            seed=outcomes.seed(self._task.problem),
            board=board,
            cancellation=self._cancellation,
        )
        with judge:
            tuner = Tuner(
                [self._problem],
                self._setting(board),
                judge,
                RemoteBuilds(self._ask),
                meter,
                self._note,
                self._cancellation,
            )
            result = tuner.run()
        if self._cancellation.cancelled:
            raise Cancelled
        self._record(result.problems[0], meter.seconds)

    def _begin(self) -> None:
        outcomes.describe_call(self._task, self._callers[0])
        if not self._task.candidates.filter(kernel__isnull=True).exists():
            refused = [
                {
                    "config": dict(one.config),
                    "stage": one.rejected.stage,
                    "reason": one.rejected.reason,
                    "detail": one.rejected.detail,
                }
                for one in self._problem.refused
            ]
            ledger.add_refused(self._task, refused, first=len(self._callers))

    def _setting(self, board: Board | None) -> Setting:
        lowered = self._scheduled.schedule.lowered
        floor = speed_of_light_ns(
            self._problem.node, lowered, dict(self._problem.bindings), board, cached=True
        )
        return Setting(
            device=self._device.id,
            target=targets.find(self._run.target),
            emulated=self._device.emulated,
            plan=default_plan(self._device.emulated),
            board=board,
            floors_ns={} if floor is None else {self._problem.name: floor},
            seed=outcomes.seed(self._task.problem),
            known=_known(self._run.target, self._callers[0].kernel.template),
            strategy=self._run.strategy,
        )

    def _ask(self, caller: TemplateCaller) -> Build:
        """The build of a candidate, which is in the ledger from now on."""
        with transaction.atomic():
            place = self._places[caller.name]
            row = self._task.template_node
            kernel = kernels.record_candidate(row, place, self._scheduled, caller)
            priority = tuning.build_priority(self._run)
            build = builds.request_builds([kernel], self._run.target, priority=priority)[kernel.pk]
            Candidate.objects.get_or_create(
                task=self._task,
                kernel=kernel,
                defaults={"position": place, "build": build, "config": dict(kernel.config)},
            )
        return build

    def _note(self, event: Event) -> None:
        """Record what became of a candidate just now. Raises ``Cancelled`` once the claim is lost:
        another worker records then."""
        entry = event.entry
        with transaction.atomic():
            if not work.extend(self._task):
                self._cancellation.cancel()
                raise Cancelled
            waiting = self._task.candidates.filter(kernel__name=entry.kernel, state__in=OPEN_STATES)
            for candidate in waiting.select_related("kernel", "build"):
                self._write(candidate, entry)

    def _write(self, candidate: Candidate, entry: Entry) -> None:
        if entry.measurement is not None:
            outcomes.record_result(self._task, candidate, entry.measurement, self._device)
        else:
            outcomes.record_loss(candidate, _loss(entry))

    def _record(self, result: ProblemResult, spent_s: float) -> None:
        """The last rounds' times, what was left untried and why, the winner; close the task."""
        with transaction.atomic():
            TuningRun.objects.select_for_update().get(pk=self._run.pk)
            work.finish(self._task, State.DONE, spent_s=F("spent_s") + spent_s)
            rows = self._task.candidates.filter(kernel__isnull=False)
            by_kernel = {
                row.kernel.name: row
                for row in rows.select_related("kernel", "build", "result")
                if row.kernel is not None
            }
            ledger.drop_builds(rows)
            results: list[tuple[Candidate, BenchmarkResult]] = []
            untried: list[Candidate] = []
            for place, entry in enumerate(result.entries[: len(self._callers)]):
                if self._places[entry.kernel] != place:
                    continue  # it renders as an earlier one does
                row = by_kernel.get(entry.kernel)
                if entry.fate is Fate.UNTRIED:
                    untried += self._leave(row, place, entry)
                elif row is not None and (final := self._final(row, entry)) is not None:
                    results.append((row, final))
            Candidate.objects.bulk_create(untried)
            in_finals = {entry.kernel for entry in _finalists(result)}
            outcomes.choose(self._task, [r for r in results if r[1].kernel.name in in_finals])
            ledger.close_run(self._run.pk)

    def _final(self, row: Candidate, entry: Entry) -> BenchmarkResult | None:
        """The result that counts: the last rounds' where there were any. None for a loss."""
        known, measured = row.result, entry.measurement
        if measured is None:
            if row.state != State.REJECTED:
                outcomes.record_loss(row, _loss(entry))
                if known is not None:  # fast, but wrong at other sizes: no result
                    known.delete()
            return None
        if known is not None and set(measured.samples_ns) <= set(known.samples_ns):
            return known
        return outcomes.record_result(self._task, row, measured, self._device)

    def _leave(self, row: Candidate | None, place: int, entry: Entry) -> list[Candidate]:
        reason = entry.reason or "the budget was spent"
        if row is not None:
            Candidate.objects.filter(pk=row.pk, state__in=OPEN_STATES).update(
                state=State.CANCELLED, reason=reason[:500], finished_at=Now()
            )
            return []
        return [
            Candidate(
                task=self._task,
                position=place,
                config=dict(entry.config),
                state=State.CANCELLED,
                reason=reason[:500],
                finished_at=timezone.now(),
            )
        ]


class _RememberingJudge(BenchJudge):
    """Answers for candidates that were seen before what was seen, until the last rounds."""

    def __init__(
        self, seen: Mapping[str, BenchmarkResult | Rejected], *args: object, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._seen = seen

    def check(self, candidate: BuiltCandidate, most_s: float) -> Check | Rejected:
        known = self._seen.get(_name(candidate.key))
        if known is None:
            return super().check(candidate, most_s)
        if isinstance(known, Rejected):
            return known
        return Check(
            passed=True,
            max_error=known.check_max_error,
            bound=known.check_bound,
            ratio=known.check_ratio,
            guard_intact=True,
            detail=known.check_detail,
        )

    def sampler(self, candidates: Mapping[str, BuiltCandidate], most_s: float) -> Sampler:
        first, *others = candidates
        known = self._seen.get(_name(first))
        if others or not isinstance(known, BenchmarkResult):
            return super().sampler(candidates, most_s)
        samples = cycle(known.samples_ns)
        return lambda _, batch: next(samples) * batch


def share_of_budget(task: TuningTask) -> Budget:
    """What a task may spend of its run's budget: an equal part of what is left to those open."""
    run = task.run
    run.refresh_from_db(fields=["started_at"])
    tasks = run.tasks.filter(state__in=OPEN_STATES).count() or 1
    others = Candidate.objects.filter(task__run=run, kernel__isnull=False).exclude(task=task)
    seconds = run.budget_s
    if seconds is not None and run.started_at is not None:
        left = seconds - (timezone.now() - run.started_at).total_seconds()
        seconds = max(left / tasks, _LEAST_S)
    tried = others.exclude(state__in=[*OPEN_STATES, State.CANCELLED])
    compiled = others.filter(build__cached=False, build__created_at__gte=run.created_at)
    return Budget(
        seconds=seconds,
        compiles=_share(run.max_compiles, compiled.values("build").distinct().count(), tasks),
        measurements=_share(run.max_measurements, tried.count(), tasks),
    )


def _share(limit: int | None, spent: int, tasks: int) -> int | None:
    return None if limit is None else -(-max(limit - spent, 0) // tasks)


def _seen(task: TuningTask) -> dict[str, BenchmarkResult | Rejected]:
    """By kernel: what an earlier try of this task saw."""
    closed = task.candidates.filter(kernel__isnull=False).exclude(state__in=OPEN_STATES)
    return {
        row.kernel.name: row.result or Rejected(Stage(row.stage), row.reason, row.detail)
        for row in closed.filter(Q(result__isnull=False) | ~Q(stage="")).select_related(
            "kernel", "result"
        )
        if row.kernel is not None
    }


def _known(target: str, template: str) -> list[Known]:
    """Winners of other problems on such a device, the newest first."""
    winners = Candidate.objects.filter(
        chosen=True, task__run__target=target, task__shape__template=template
    )
    return [
        Known(
            Shape(template, tuple(shape["dtypes"]), tuple(shape["extents"])),
            config,
        )
        for shape, config in winners.order_by("-pk").values_list("task__shape", "config")[
            :_KNOWN_AT_MOST
        ]
    ]


def _finalists(result: ProblemResult) -> list[Entry]:
    """Those between whom the tuner decided: the chosen one, and what ties with it."""
    return [one for one in result.entries if one.fate is Fate.CHOSEN or one.tied]


def _loss(entry: Entry) -> Rejected:
    return Rejected(Stage(entry.stage or Stage.RUN), entry.reason, entry.detail)


def _name(key: str) -> str:
    """A kernel's name from the tuner's key for it."""
    return key.rpartition(":")[2]
