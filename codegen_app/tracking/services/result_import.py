"""Results recorded on another installation become rows: a whole file or nothing, each run once.

They never mix with local measurements: their device's name says that they are imported, and so does
every bucket. Kernels are rendered again from their configurations; a file's text becomes a kernel's
source only on request, and such a kernel is shown, never called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import builds
from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.services import result_history
from codegen_app.tracking.services.result_kernels import (
    RecordedKernels,
    as_json_lists,
    device_of,
    measurement_of,
)
from codegen_app.tuning.models import Candidate, ResultImport, TuningRun, TuningTask
from codegen_app.tuning.services import candidate_results
from scheduler.errors import UserError
from scheduler.results import file as results_file
from scheduler.results.checks import check_timestamps
from scheduler.results.model import CandidateRecord, KernelText, Results, RunRecord, TaskRecord
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY


@dataclass(frozen=True)
class ImportSummary:
    """How many runs of a file are new, how many exist already, and how many points were added to
    histories, for kernels of other commits."""

    new: tuple[TuningRun, ...]
    known: int
    points: int = 0


def import_file(
    path: Path, actor: AbstractBaseUser | None, why: str = "", *, with_sources: bool = False
) -> ImportSummary:
    """Record a file's runs. Raises ``UserError`` naming the row and the field, with nothing
    recorded. ``with_sources``: also record kernels that this generator does not make, from the
    file's text."""
    return record(results_file.read(path), path.name, actor, why, with_sources=with_sources)


def record(
    results: Results,
    source: str,
    actor: AbstractBaseUser | None,
    why: str = "",
    *,
    with_sources: bool = False,
) -> ImportSummary:
    """Record results that were parsed before; ``source`` names them in errors."""
    check_timestamps(results, timezone.now(), source)
    texts = results.kernels if with_sources else {}
    new: list[TuningRun] = []
    with transaction.atomic():
        lock_transaction(LockClass.RECORD_RESULTS)
        past = [(place, run) for place, run in enumerate(results.runs) if run.revision]
        points = result_history.store(past, texts, results.listings, source)
        for place, run in enumerate(results.runs):
            if run.revision is not None:
                continue
            digest = results_file.run_digest(run)
            if ResultImport.objects.filter(digest=digest).exists():
                continue
            try:
                new.append(_Run(run, texts, results.listings, actor).record(digest))
            except UserError as error:
                raise UserError(f"{source}: runs[{place}].{error}") from None
            _request_listings(new[-1])
        known = len(results.runs) - len(past) - len(new)
        summary = f"{source}: {len(new)} new runs, {known} already imported"
        if past:
            summary = f"{source}: {points} new history points"
        audit.note(actor, "import results", summary, why)
    return ImportSummary(tuple(new), known, points)


def _request_listings(run: TuningRun) -> None:
    """Request builds of the kernels that the run selected and whose instructions are not in the
    file: for the sources that a compiler here builds for its target."""
    by_source: dict[str, list[GeneratedKernel]] = defaultdict(list)
    with_listing = Build.objects.filter(target=run.target, listing__isnull=False).values("kernel")
    selected = GeneratedKernel.objects.filter(selections__result__task__run=run).distinct()
    for kernel in selected.exclude(pk__in=with_listing):
        by_source[kernel.source_file].append(kernel)
    for kernels in by_source.values():
        with suppress(UserError):  # no compiler: the kernel's page says how to get one
            builds.request_builds(kernels, run.target)


class _Run:
    """A run that is being recorded."""

    def __init__(
        self,
        run: RunRecord,
        texts: Mapping[str, KernelText],
        listings: Mapping[str, str],
        actor: AbstractBaseUser | None,
    ) -> None:
        self._record = run
        self._actor = actor
        self._started_at = datetime.fromisoformat(run.started_at)
        self._finished_at = datetime.fromisoformat(run.finished_at)
        self._kernels = RecordedKernels(run, texts, listings)

    def record(self, digest: str) -> TuningRun:
        record = self._record
        row = TuningRun.objects.create(
            graph=self._kernels.graph,
            device=record.device,
            target=record.target,
            bindings=dict(record.bindings),
            note=record.note,
            candidate_limit=record.candidate_limit,
            budget_s=record.budget.seconds,
            max_compiles=record.budget.compiles,
            max_measurements=record.budget.measurements,
            strategy=record.strategy or DEFAULT_STRATEGY,
            state=record.state,
            reason=record.reason,
            requested_by_id=audit.actor_id(self._actor),
            planned_at=self._started_at,
            started_at=self._started_at,
            finished_at=self._finished_at,
        )
        device = record.devices[0] if record.devices else None
        ResultImport.objects.create(
            run=row,
            digest=digest,
            version=record.origin.version,
            commit=record.origin.commit,
            host=record.origin.host,
            device_name=device.name if device else "",
            driver=device.driver if device else "",
            measured_at=datetime.fromisoformat(record.origin.date),
            seed=record.seed,
            imported_by_id=audit.actor_id(self._actor),
        )
        for place, task in enumerate(record.tasks):
            try:
                self._task(row, task)
            except UserError as error:
                raise UserError(f"tasks[{place}].{error}") from None
        return row

    def _task(self, run: TuningRun, task: TaskRecord) -> None:
        node, problem = self._kernels.node(task)
        row = TuningTask.objects.create(
            run=run,
            problem=problem,
            template_node=node,
            title=task.title,
            operands=[as_json_lists(asdict(operand)) for operand in task.operands],
            shape=as_json_lists(asdict(task.shape)) if task.shape else {},
            state=task.state,
            reason=task.reason,
            spent_s=task.spent_s,
            started_at=self._started_at,
            finished_at=self._finished_at,
        )
        tied: list[Candidate] = []
        chosen: Candidate | None = None
        for place, line in enumerate(task.candidates):
            try:
                candidate = self._candidate(row, line)
            except UserError as error:
                raise UserError(f"candidates[{place}].{error}") from None
            if line.tied:
                tied.append(candidate)
            if line.chosen:
                chosen = candidate
        if chosen is not None and chosen.result is not None:
            moment = chosen.finished_at or self._finished_at
            candidate_results.choose(chosen, chosen.result, tied, moment)

    def _candidate(self, task: TuningTask, record: CandidateRecord) -> Candidate:
        kernel = self._kernels.kernel(task.template_node, record) if record.kernel else None
        build = self._kernels.build(kernel, record) if kernel is not None else None
        finished_at = None
        if record.at_s is not None:
            finished_at = self._started_at + timedelta(seconds=record.at_s)
        result = None
        if build is not None and record.timed is not None:
            result = candidate_results.store_measurement(
                measurement_of(self._record, record.timed, record.kernel),
                build,
                task.problem_id,
                device_of(self._record, record.timed),
                task,
                finished_at or self._finished_at,
            )
        return Candidate.objects.create(
            task=task,
            position=record.position,
            kernel=kernel,
            build=build,
            result=result,
            config=dict(record.config),
            state=record.state,
            stage=record.stage,
            reason=record.reason,
            detail=record.detail,
            finished_at=finished_at,
        )
