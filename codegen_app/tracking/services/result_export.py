"""Finished runs as the records of a file, which another installation can import."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from cattrs import Converter

from codegen_app.kernels.models import KernelUse
from codegen_app.platform import artifacts
from codegen_app.tuning.models import Candidate, Environment, TuningRun
from codegen_app.tuning.models.benchmark_result import IMPORTED
from codegen_app.web.row import build_row
from scheduler.codegen.kernel import KernelArg, Launch, LineOrigin
from scheduler.codegen.problem import ProblemShape
from scheduler.errors import UserError
from scheduler.ir.codec import decode, make_codec
from scheduler.ir.index.text import parse_expr
from scheduler.results.collect import timed_record
from scheduler.results.model import (
    BuildFacts,
    CandidateRecord,
    Compiler,
    GraphId,
    KernelText,
    OperandRecord,
    Origin,
    Results,
    RunRecord,
    TaskRecord,
)
from scheduler.results.origin import kiln_commit
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Budget
from scheduler.version import kiln_version

T = TypeVar("T")


def export(runs: Iterable[TuningRun]) -> Results:
    """Return the results of these runs. Raises ``UserError`` for an open run, and if there are
    none."""
    kernels: dict[str, KernelText] = {}
    listings: dict[str, str] = {}
    records = [_Run(run, kernels, listings).record() for run in runs]
    if not records:
        raise UserError("no finished run to export")
    return Results(dict(sorted(kernels.items())), tuple(records), dict(sorted(listings.items())))


class _Run:
    """One run; devices and compilers are numbered as they first appear."""

    def __init__(
        self, run: TuningRun, kernels: dict[str, KernelText], listings: dict[str, str]
    ) -> None:
        if run.is_open or run.finished_at is None:
            raise UserError(f"run {run.pk} has not finished: export it later")
        if run.is_modelled:
            raise UserError(f"run {run.pk}: modelled times cannot be exported as results")
        self._run = run
        self._started_at = run.started_at or run.created_at
        self._finished_at = max(
            run.finished_at, self._started_at
        )  # the clock may have been set back
        self._kernels, self._listings = kernels, listings
        self._devices: list[DeviceInfo] = []
        self._compilers: list[Compiler] = []

    def record(self) -> RunRecord:
        run = self._run
        tasks: list[TaskRecord] = []
        rows = run.tasks.select_related("problem", "template_node")
        for task in rows.order_by("template_node__position", "pk"):
            uses = KernelUse.objects.filter(template_node=task.template_node)
            use_by_kernel = {use.kernel_id: use for use in uses}
            candidates = task.candidates.select_related(
                "kernel", "build", "build__listing", "result__environment"
            )
            record = build_row(
                TaskRecord,
                task,
                problem=task.problem.digest,
                text=task.problem.text,
                node=task.template_node.name,
                operands=_read(task.operands, tuple[OperandRecord, ...], task.title),
                shape=_read(task.shape, ProblemShape, task.title) if task.shape else None,
                candidates=tuple(
                    self._candidate(row, use_by_kernel.get(row.kernel_id or 0))
                    for row in candidates.order_by("position")
                ),
            )
            tasks.append(record)
        imported = getattr(run, "imported", None)
        if imported is None:  # measured by this installation
            origin = Origin(kiln_version(), kiln_commit(), _iso(self._finished_at), "")
        else:
            date = _iso(imported.measured_at)
            origin = Origin(imported.version, imported.commit, date, imported.host)
        return build_row(
            RunRecord,
            run,
            origin=origin,
            graph=GraphId(run.graph.name, run.graph.digest),
            seed=imported.seed if imported else None,
            strategy=run.strategy if run.has_budget else "",
            budget=Budget(run.budget_s, run.max_compiles, run.max_measurements),
            started_at=_iso(self._started_at),
            finished_at=_iso(self._finished_at),
            devices=tuple(self._devices),
            compilers=tuple(self._compilers),
            tasks=tuple(tasks),
            revision=None,
        )

    def _candidate(self, row: Candidate, use: KernelUse | None) -> CandidateRecord:
        kernel, build, result = row.kernel, row.build, row.result
        name, facts, timed, at_s = "", None, None, None
        if kernel is not None and build is not None:
            name = kernel.name
        if kernel is not None and name and name not in self._kernels:
            self._kernels[name] = build_row(
                KernelText,
                kernel,
                args=_read(kernel.args, tuple[KernelArg, ...], name),
                launches=_read(kernel.launches, tuple[Launch, ...], name),
                workspace_bytes=parse_expr(kernel.workspace_bytes),
            )
        if build is not None:
            flags = tuple(build.flags)
            compiler = Compiler(
                build.toolchain, build.toolchain_version, build.toolchain_digest, flags
            )
            facts = BuildFacts(
                _index(self._compilers, compiler),
                build.code_digest,
                build.duration_s or 0.0,
                build.resources,
            )
            is_compared = row.chosen or (use is not None and use.is_default)
            if is_compared and build.listing is not None and artifacts.is_whole(build.listing):
                self._listings[build.code_digest] = artifacts.read(build.listing).decode()
        if result is not None:
            device = _index(self._devices, device_of(result.environment))
            timed = timed_record(result.measurement(name, self._run.device), device)
        if row.finished_at is not None:
            at_s = max(0.0, (row.finished_at - self._started_at).total_seconds())
        return build_row(
            CandidateRecord,
            row,
            at_s=at_s,
            kernel=name,
            description=use.description if use else "",
            call=use.call if use else {},
            line_origins=_read(use.line_origins if use else [], tuple[LineOrigin, ...], name),
            build=facts,
            timed=timed,
        )


def device_of(environment: Environment) -> DeviceInfo:
    """Return the device as the engine represents it."""
    name = environment.device_name.removesuffix(IMPORTED)
    return build_row(DeviceInfo, environment, id=environment.device, name=name)


def _read(data: Any, kind: type[T], what: str) -> T:
    """Return a JSON column's content as the engine's type."""
    return decode(_codec(), data, kind, what)


@cache
def _codec() -> Converter:
    return make_codec()


def _index(known: list[T], value: T) -> int:
    if value not in known:
        known.append(value)
    return known.index(value)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
