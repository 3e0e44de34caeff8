"""What a remote worker gets with a task: the problem, libraries, earlier results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from django.conf import settings

from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.services import builds
from codegen_app.platform.models import Artifact
from codegen_app.remote import leases
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningTask
from codegen_app.tuning.services import (
    budgets,
    candidate_results,
    modelled_tuning,
)
from codegen_app.tuning.services import (
    search as tuning_search,
)
from codegen_app.workers import work
from codegen_app.workers.faults import Fault
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.agent.protocol import BuildResult, Library, Result, Samples, Task
from scheduler.benchmark.measurement import Check
from scheduler.errors import Rejected, Stage
from scheduler.tuning.warm_start import PriorResult


def task_of(lease: RemoteLease) -> Task:
    """Return all that measuring needs; files are fetched by their digests."""
    task = lease.tuning_task
    run, graph = task.run, task.run.graph.file
    begins_with, begins = modelled_tuning.warm_start_lines(task)
    return Task(
        lease=lease.key,
        seconds=float(settings.WORK_LEASE_S),
        title=task.title,
        device=run.device,
        graph=graph.digest,
        graph_bytes=graph.size_bytes,
        node=task.template_node.name,
        target=run.target,
        bindings=dict(run.bindings),
        seed=candidate_results.seed(task.problem),
        strategy=run.strategy,
        libraries=() if run.has_budget else tuple(_libraries(task)),
        seen=tuple(_earlier_results(task)),
        budget=budgets.share_of_budget(task) if run.has_budget else None,
        known=tuple(_prior_results(task)),
        begins_with=begins_with,
        begins=tuple(begins),
    )


def build_result(row: Candidate, since: datetime) -> BuildResult | None:
    """Return the result of a candidate's build; None while it is open. Builds from before ``since``
    count as cached."""
    assert row.kernel is not None
    build = row.build
    if build is None:
        return BuildResult(row.kernel.name, loss=Rejected(Stage(row.stage), row.reason))
    if build.is_open:
        return None
    if build.state != State.DONE or build.library is None:
        loss = Rejected(Stage.COMPILE, build.reason or "the build was cancelled")
        return BuildResult(row.kernel.name, loss=loss)
    library = library_of(row.kernel, build, build.library)
    known = build.cached or build.created_at < since
    return BuildResult(row.kernel.name, library=replace(library, cached=known))


def file_of(lease: RemoteLease, digest: str) -> Artifact:
    """Return a file that the leased task names. Raises ``leases.LeaseOverError`` for any other."""
    task = lease.tuning_task
    if task.run.graph.file.digest == digest:
        return task.run.graph.file
    row = task.candidates.filter(build__state=State.DONE, build__library__digest=digest)
    found = row.select_related("build__library").first()
    if found is None or found.build is None or found.build.library is None:
        raise leases.UnknownFileError("the task of this lease names no such file")
    return found.build.library


def report_missing_file(lease: RemoteLease, digest: str, line: str) -> leases.LeaseOverError:
    """Handle a file that the storage lost: a library is built again, and the task waits. Returns
    the error to raise."""
    task = lease.tuning_task
    for row in task.candidates.filter(build__library__digest=digest).select_related("build"):
        assert row.build is not None
        builds.requeue(row.build)
    work.postpone(task, Fault(line))
    leases.end(lease, LeaseEnd.FAILED)
    return leases.LeaseOverError(line)


def library_of(kernel: GeneratedKernel, build: Build, file: Artifact) -> Library:
    """Return a kernel's library as described to a worker."""
    return Library(
        kernel=kernel.name,
        digest=file.digest,
        size_bytes=file.size_bytes,
        source_file=kernel.source_file,
        source_digest=kernel.source_digest,
        code_digest=build.code_digest,
        toolchain=build.toolchain,
        toolchain_version=build.toolchain_version,
        toolchain_digest=build.toolchain_digest,
        flags=tuple(build.flags),
        resources=build.resources,
    )


def _libraries(task: TuningTask) -> Iterator[Library]:
    """Yield the libraries of planned kernels; without its library, a kernel cannot be tried."""
    for row in tuning_search.planned_candidates(task).values():
        if row.build is not None and row.kernel is not None and row.build.library is not None:
            yield library_of(row.kernel, row.build, row.build.library)


def _prior_results(task: TuningTask) -> list[PriorResult]:
    """Return winners of other problems of the default's template."""
    default = KernelUse.objects.filter(template_node=task.template_node, is_default=True)
    template = default.values_list("kernel__template", flat=True).first()
    return tuning_search.prior_results(task.run.target, template) if template else []


def _earlier_results(task: TuningTask) -> list[Result]:
    """Return the results of earlier attempts."""
    closed = task.candidates.filter(kernel__isnull=False).exclude(state__in=OPEN_STATES)
    found = []
    for row in closed.select_related("kernel", "result"):
        assert row.kernel is not None
        if row.result is not None:
            found.append(Result(row.kernel.name, samples_of(row.result)))
        elif row.stage:
            loss = Rejected(Stage(row.stage), row.reason, row.detail)
            found.append(Result(row.kernel.name, None, loss))
    return found


def samples_of(row: BenchmarkResult) -> Samples:
    """Return the samples that a result's figures are derived from."""
    return Samples(
        tuple(row.samples_ns),
        row.batch,
        Check(True, row.check_max_error, row.check_bound, row.check_ratio, True, row.check_detail),
        tuple((ns, reason) for ns, reason in row.rejected_samples),
        {name: tuple(values) for name, values in row.readings.items()},
    )
