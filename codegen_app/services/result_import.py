"""Results that were recorded elsewhere become rows: a whole file or nothing, each run once.

They never mix with what was measured here: their device's name says that they are imported, and
with it every bucket. Kernels are rendered anew from their configurations; text of a file becomes a
kernel's source only for who says so, and such a kernel is shown, never called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from codegen_app.models import (
    BenchmarkResult,
    Build,
    Candidate,
    GeneratedKernel,
    Graph,
    KernelUse,
    ResultImport,
    State,
    TemplateNode,
    TuningRun,
    TuningTask,
)
from codegen_app.models.benchmark_result import IMPORTED
from codegen_app.models.build import ELSEWHERE
from codegen_app.services import audit, engine, environments, kernels, limits, outcomes, tuning
from scheduler import pipeline
from scheduler.benchmark.measurement import Measurement
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.names import is_named_by_code
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.ir.index.text import print_expr
from scheduler.outcome import UserError
from scheduler.results import file as results_file
from scheduler.results.model import (
    CandidateRecord,
    KernelText,
    Results,
    RunRecord,
    TaskRecord,
    Timed,
)
from scheduler.targets import find
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY

_RECORDING = 0x52455355  # the advisory lock's number: "RESU"


@dataclass(frozen=True)
class Imported:
    """The runs of a file that are new, and how many are here already."""

    new: tuple[TuningRun, ...]
    known: int


def import_file(
    path: Path, actor: AbstractBaseUser | None, why: str = "", *, with_sources: bool = False
) -> Imported:
    """Record a file's runs. Raises ``UserError`` naming the row and the field; nothing is recorded
    then. ``with_sources``: also kernels that the generator here does not make, by the file's text.
    """
    return record(results_file.read(path), path.name, actor, why, with_sources=with_sources)


def record(
    results: Results,
    what: str,
    actor: AbstractBaseUser | None,
    why: str = "",
    *,
    with_sources: bool = False,
) -> Imported:
    """The same of what was read before; ``what`` names it in errors."""
    texts = results.kernels if with_sources else {}
    new: list[TuningRun] = []
    with transaction.atomic():
        with connection.cursor() as cursor:  # two that import the same file
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_RECORDING])
        for place, run in enumerate(results.runs):
            digest = results_file.run_digest(run)
            if ResultImport.objects.filter(digest=digest).exists():
                continue
            try:
                new.append(_Run(run, texts, actor).record(digest))
            except UserError as error:
                raise UserError(f"{what}: runs[{place}].{error}") from None
        known = len(results.runs) - len(new)
        audit.note(actor, "import results", f"{what}: {len(new)} new runs, {known} known", why)
    return Imported(tuple(new), known)


class _Run:
    """One run on its way into rows."""

    def __init__(
        self,
        run: RunRecord,
        texts: Mapping[str, KernelText],
        actor: AbstractBaseUser | None,
    ) -> None:
        self._record = run
        self._texts = texts
        self._actor = actor
        self._since = datetime.fromisoformat(run.started_at)
        self._over = datetime.fromisoformat(run.finished_at)
        self._graph = _graph(run)
        self._offered: dict[tuple[int, str], list[dict[str, ConfigValue]]] = {}

    def record(self, digest: str) -> TuningRun:
        record = self._record
        row = TuningRun.objects.create(
            graph=self._graph,
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
            planned_at=self._since,
            started_at=self._since,
            finished_at=self._over,
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

    @cached_property
    def _scheduled(self) -> engine.Scheduled:
        try:
            return engine.scheduled(self._graph.file.digest)
        except FileNotFoundError:
            message = f"graph: the file of {self._graph} is missing from the storage"
            raise UserError(message) from None

    @cached_property
    def _backend(self) -> BaseScheduling:
        """What makes kernels for the run's target alone, as a tuning run there does."""
        return pipeline.scheduling(self._scheduled.schedule, (find(self._record.target),))

    def _task(self, run: TuningRun, task: TaskRecord) -> None:
        nodes = self._graph.template_nodes.filter(problem__digest=task.problem)
        node = nodes.select_related("problem").order_by("position").first()
        if node is None or node.problem is None:
            raise UserError(
                f"problem: no kernel of {self._graph} solves {task.problem[:12]} ({task.title}) in"
                " this version of Kiln"
            )
        limits.record(
            node.problem,
            self._scheduled.node(node.name),
            self._scheduled.schedule.lowered,
            self._record.bindings,
        )
        row = TuningTask.objects.create(
            run=run,
            problem=node.problem,
            template_node=node,
            title=task.title,
            operands=[_lists(asdict(operand)) for operand in task.operands],
            shape=_lists(asdict(task.shape)) if task.shape else {},
            state=task.state,
            reason=task.reason,
            spent_s=task.spent_s,
            started_at=self._since,
            finished_at=self._over,
        )
        tied: list[Candidate] = []
        chosen: Candidate | None = None
        for place, one in enumerate(task.candidates):
            try:
                candidate = self._candidate(row, one)
            except UserError as error:
                raise UserError(f"candidates[{place}].{error}") from None
            if one.tied:
                tied.append(candidate)
            if one.chosen:
                chosen = candidate
        if chosen is not None and chosen.result is not None:
            moment = chosen.finished_at or self._over
            outcomes.choose(chosen, chosen.result, tied, moment)

    def _candidate(self, task: TuningTask, one: CandidateRecord) -> Candidate:
        kernel = self._kernel(task.template_node, one) if one.kernel else None
        build = self._build(kernel, one) if kernel is not None else None
        moment = self._moment(one)
        result = None
        if kernel is not None and build is not None and one.timed is not None:
            result = self._result(task, kernel, build, one.timed)
            # When it was measured: the latest of a bucket is shown.
            BenchmarkResult.objects.filter(pk=result.pk).update(created_at=moment or self._over)
        return Candidate.objects.create(
            task=task,
            position=one.position,
            kernel=kernel,
            build=build,
            result=result,
            config=dict(one.config),
            state=one.state,
            stage=one.stage,
            reason=one.reason,
            detail=one.detail,
            finished_at=moment,
        )

    def _moment(self, one: CandidateRecord) -> datetime | None:
        return None if one.at_s is None else self._since + timedelta(seconds=one.at_s)

    def _result(
        self, task: TuningTask, kernel: GeneratedKernel, build: Build, timed: Timed
    ) -> BenchmarkResult:
        device = self._record.devices[timed.device]
        measured = Measurement(
            kernel=kernel.name,
            device=device.id,
            bindings=self._record.bindings,
            samples_ns=timed.samples_ns,
            batch=timed.batch,
            metrics=timed.metrics,
            rejected=timed.rejected,
            check=timed.check,
            emulated=device.emulated,
            readings=timed.readings,
        )
        marked = replace(device, name=f"{device.name}{IMPORTED}")
        return BenchmarkResult.objects.create(
            task=task,
            kernel=kernel,
            build=build,
            problem_id=task.problem_id,
            environment=environments.record(marked, build),
            **BenchmarkResult.fields_of(measured),
        )

    def _build(self, kernel: GeneratedKernel, one: CandidateRecord) -> Build:
        """The build of that very compiler where it is here; else a row that says what is known of
        it, and that is compiled once somebody asks for it."""
        assert one.build is not None
        compiler = self._record.compilers[one.build.compiler]
        row, _ = Build.objects.get_or_create(
            kernel=kernel,
            target=self._record.target,
            flags=list(compiler.flags),
            toolchain=compiler.name,
            toolchain_version=compiler.version,
            toolchain_digest=compiler.digest,
            defaults={
                "state": State.CANCELLED,
                "reason": ELSEWHERE,
                "code_digest": one.build.code_digest,
                "duration_s": one.build.duration_s,
                "resources": {name: dict(part) for name, part in one.build.resources.items()},
                "finished_at": self._over,
            },
        )
        return row

    def _kernel(self, node: TemplateNode, one: CandidateRecord) -> GeneratedKernel:
        """The row of the candidate's kernel: the generator's own, or by the file's text.

        The name is that of the code; the comment above it is of whichever model came first.
        """
        caller = self._rendered(node, one)
        if caller is not None:
            row = kernels.record_candidate(
                *(node, one.position, self._scheduled, caller, self._backend)
            )
            scheduled, made = self._scheduled.node(node.name), caller.kernel
            if not self._backend.offers(scheduled, made.template, made.config):
                # Recorded under other rules: shown, but no code calls it here.
                uses = KernelUse.objects.filter(kernel=row, template_node=node, is_default=False)
                uses.update(generator="")
            return row
        text = self._texts.get(one.kernel)
        if text is None:
            raise UserError(
                f"kernel: the generator of this version does not make {one.kernel}; to show it by"
                " the text in the file, import with its sources"
            )
        if not is_named_by_code(one.kernel, text.source, self._comment_mark(text.source_file)):
            raise UserError(f"kernel: the source of {one.kernel} in the file is not what it names")
        return _shown(one, text, node)

    def _comment_mark(self, source_file: str) -> str:
        known = {one.source_file: one.comment_mark for one in self._backend.members}
        if source_file not in known:
            raise UserError(f"kernel: nothing makes {source_file} for {self._record.target}")
        return known[source_file]

    def _rendered(self, node: TemplateNode, one: CandidateRecord) -> TemplateCaller | None:
        scheduled, config = self._scheduled.node(node.name), dict(one.config)
        for member in self._backend.members:
            if member.serves(scheduled) and config in self._configs(member, node):
                caller = member.template(scheduled).generate(config)
                if caller.name == one.kernel:
                    return caller
        return None

    def _configs(self, backend: BaseScheduling, node: TemplateNode) -> list[dict[str, ConfigValue]]:
        """What a backend may offer for a node, the default first."""
        key = id(backend), node.name
        if key not in self._offered:
            template = backend.template(self._scheduled.node(node.name))
            configs = [dict(config) for config in template.configs()]
            if backend in (self._backend.members[0], self._scheduled.backend):
                configs = [dict(template.default_config()), *configs]
            self._offered[key] = configs
        return self._offered[key]


def _graph(run: RunRecord) -> Graph:
    graph = Graph.objects.filter(digest=run.graph.digest).select_related("file").first()
    if graph is None:
        raise UserError(
            f"graph: {run.graph.name} ({run.graph.digest[:12]}) is not here: import the model first"
        )
    if graph.state != State.DONE:
        raise UserError(f"graph: {graph} is not prepared yet ({graph.state}): try again then")
    if set(run.bindings) != set(graph.symbols):
        raise UserError(f"bindings: {graph} has the sizes {', '.join(graph.symbols) or 'none'}")
    try:
        tuning.checked_bindings(graph, run.bindings)
    except UserError as error:
        raise UserError(f"bindings: {error}") from None
    return graph


def _shown(one: CandidateRecord, text: KernelText, node: TemplateNode) -> GeneratedKernel:
    """A kernel that this generator does not make, with what the file says of it."""
    row, _ = GeneratedKernel.objects.get_or_create(
        name=one.kernel,
        defaults={
            "source_digest": text.source_digest,
            "template": text.template,
            "config": dict(text.config),
            "source": text.source,
            "source_file": text.source_file,
            "args": [asdict(arg) for arg in text.args],
            "launches": [
                _lists({**asdict(launch), "grid": [print_expr(extent) for extent in launch.grid]})
                for launch in text.launches
            ],
            "workspace_bytes": print_expr(text.workspace_bytes)[:500],
        },
    )
    KernelUse.objects.get_or_create(
        kernel=row,
        template_node=node,
        defaults={
            "position": kernels.RECORDED + one.position,
            "description": one.description,
            "call": dict(one.call),
            "line_origins": [_lists(asdict(origin)) for origin in one.line_origins],
        },
    )
    return row


def _lists(fields: Mapping[str, object]) -> dict[str, object]:
    """As JSON has them, so that rows that were just made read like those from the database."""
    return {name: list(part) if isinstance(part, tuple) else part for name, part in fields.items()}
