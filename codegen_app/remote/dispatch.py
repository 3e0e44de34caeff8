"""What a remote worker gets with a task: the problem, libraries, earlier results."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.conf import settings

from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import builds
from codegen_app.platform.models import Artifact
from codegen_app.remote import leases
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.queries import serving
from codegen_app.tuning.services import budgets, candidate_results, modelled_tuning
from codegen_app.tuning.services import search as tuning_search
from codegen_app.web.row import build_row
from codegen_app.workers import work
from codegen_app.workers.faults import Fault
from codegen_app.workers.models import State
from scheduler.agent.protocol import BuildResult, Library, Task, result_of
from scheduler.errors import Rejected, Stage


def task_of(lease: RemoteLease) -> Task:
    """Return all that measuring needs; files are fetched by their digests."""
    task = lease.tuning_task
    run, graph = task.run, task.run.graph.file
    begins_with, begins = modelled_tuning.warm_start_lines(task)
    # Without its library, a planned kernel cannot be tried; a search requests builds on the way.
    planned = {} if run.has_budget else tuning_search.planned_candidates(task)
    built = [row.build for row in planned.values() if row.build is not None]
    libraries = [library_of(build, build.library) for build in built if build.library is not None]
    earlier = tuning_search.earlier_results(task)
    default = KernelUse.objects.filter(template_node=task.template_node, is_default=True)
    template = default.values_list("kernel__template", flat=True).first()
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
        libraries=tuple(libraries),
        seen=tuple(result_of(kernel, outcome) for kernel, outcome in earlier.items()),
        budget=budgets.share_of_budget(task) if run.has_budget else None,
        known=tuple(tuning_search.prior_results(run.target, template)) if template else (),
        begins_with=begins_with,
        begins=tuple(begins),
        selected=serving.selected_kernel(task.problem, run, _device_name(lease, run.device)),
    )


def _device_name(lease: RemoteLease, device: str) -> str:
    """Return the model of a device of the leased worker."""
    names = {fields["id"]: str(fields["name"]) for fields in lease.worker.devices}
    return names.get(device, "")


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
    library = library_of(build, build.library)
    known = build.cached or build.created_at < since
    return BuildResult(row.kernel.name, library=replace(library, cached=known))


def file_of(lease: RemoteLease, digest: str) -> Artifact:
    """Return a file that the leased task names. Raises ``leases.LeaseOverError`` for any other."""
    task = lease.tuning_task
    if task.run.graph.file.digest == digest:
        return task.run.graph.file
    rows = task.candidates.filter(build__state=State.DONE, build__library__digest=digest)
    row = rows.select_related("build__library").first()
    if row is None or row.build is None or row.build.library is None:
        raise leases.UnknownFileError("the task of this lease names no such file")
    return row.build.library


def recover_from_missing_file(
    lease: RemoteLease, digest: str, reason: str
) -> leases.LeaseOverError:
    """Requeue the builds of a file that the storage lost, postpone the task and end the lease.
    Returns the error to raise."""
    task = lease.tuning_task
    for row in task.candidates.filter(build__library__digest=digest).select_related("build"):
        assert row.build is not None
        builds.requeue(row.build)
    work.postpone(task, Fault(reason))
    leases.end(lease, LeaseEnd.FAILED)
    return leases.LeaseOverError(reason)


def library_of(build: Build, file: Artifact) -> Library:
    """Return a build's library as described to a worker."""
    kernel = build.kernel
    return build_row(
        Library,
        build,
        kernel=kernel.name,
        digest=file.digest,
        size_bytes=file.size_bytes,
        source_file=kernel.source_file,
        source_digest=kernel.source_digest,
        flags=tuple(build.flags),
        cached=True,
    )
