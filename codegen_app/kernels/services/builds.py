"""Compiling: requesting builds and running them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q, QuerySet

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph
from codegen_app.kernels.modelling import automatic, build_events
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.signals import build_finished, build_replaced
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.workers import compilers, queue, work
from codegen_app.workers.faults import MachineFaultError
from codegen_app.workers.models import OPEN_STATES, State, Worker
from scheduler import targets
from scheduler.build import compile as compiler
from scheduler.build.flags import DEFAULT_FLAGS, Flags
from scheduler.build.model import Build as Built
from scheduler.build.model import Toolchain
from scheduler.build.recipe import Recipe, recipe_of
from scheduler.errors import Interrupted, MachineError, Rejected, Stage, UserError
from scheduler.ir.operations import GroupKind
from scheduler.sandbox.process import Cancellation, Cancelled

# Templates before loops; builds that a person requests come first.
TEMPLATE_KINDS = (
    GroupKind.GEMM,
    GroupKind.CONVOLUTION,
    GroupKind.DEPTHWISE,
    GroupKind.ATTENTION,
)
_TEMPLATE_PRIORITY, _OTHER_PRIORITY, _REQUESTED_PRIORITY = 20, 10, 30


def request_builds(
    kernels: Iterable[GeneratedKernel],
    target: str,
    flags: Flags = DEFAULT_FLAGS,
    priority: int = 0,
) -> dict[int, Build]:
    """Return the builds of these kernels for one target, by kernel; new ones are queued.

    Raises ``UserError`` for an unknown target, or for one that no compiler here builds for.
    """
    # Always in the same order, so that two requests for the same rows do not deadlock.
    by_key = {kernel.pk: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.pk)}
    by_kernel: dict[int, Build] = {}
    for source_file in sorted({kernel.source_file for kernel in by_key.values()}) or [""]:
        toolchain = compilers.toolchain_for(target, source_file)
        identity = {
            "target": targets.find(target).name,
            "flags": list(flags.values),
            "toolchain": toolchain.name,
            "toolchain_version": toolchain.version[:200],
            "toolchain_digest": toolchain.path_digest,
        }
        compiled = [kernel for kernel in by_key.values() if kernel.source_file == source_file]
        Build.objects.bulk_create(
            (Build(kernel=kernel, priority=priority, **identity) for kernel in compiled),
            ignore_conflicts=True,
        )
        rows = Build.objects.filter(kernel__in=compiled, **identity).select_related("kernel")
        # Builds that were dropped with a run or a compiler are requested again.
        rows.filter(state=State.CANCELLED).update(**work.REQUEUED_FIELDS)
        by_kernel |= {build.kernel_id: build for build in rows}
        rows.filter(state=State.QUEUED, priority__lt=priority).update(priority=priority)
    if waiting := sum(build.state == State.QUEUED for build in by_kernel.values()):
        queue.notify(queue.Kind.COMPILE, waiting)
    return by_kernel


def request_defaults(graph: Graph) -> None:
    """Request builds of every node's default kernel, for each target of the graph."""
    defaults = KernelUse.objects.filter(template_node__graph=graph, is_default=True)
    by_priority: dict[int, list[GeneratedKernel]] = {_TEMPLATE_PRIORITY: [], _OTHER_PRIORITY: []}
    for use in defaults.select_related("kernel", "template_node"):
        is_template = use.template_node.kind in TEMPLATE_KINDS
        by_priority[_TEMPLATE_PRIORITY if is_template else _OTHER_PRIORITY].append(use.kernel)
    for priority, kernels in by_priority.items():
        for target in graph.targets if kernels else ():
            request_builds(kernels, target, priority=priority)


@transaction.atomic
def request_build(
    kernel: GeneratedKernel, target: str, flags: Flags, actor: AbstractBaseUser | None
) -> Build:
    """Request one build for a person. It runs again if it failed, or if the storage lacks a file.
    Raises ``UserError`` as ``request_builds`` does."""
    build = request_builds([kernel], target, flags, priority=_REQUESTED_PRIORITY)[kernel.pk]
    if build.state not in OPEN_STATES and not (build.state == State.DONE and has_files(build)):
        requeue(build, priority=_REQUESTED_PRIORITY)
    Build.objects.filter(pk=build.pk).update(requested=True)
    build.refresh_from_db()
    audit.record(actor, "build", build)
    return build


def has_files(build: Build) -> bool:
    """Return whether the storage has all files of a finished build."""
    files = (build.listing, build.code_object, build.intermediate, build.library)
    return all(artifacts.is_whole(file) for file in files if file is not None)


def requeue(build: Build, priority: int | None = None) -> None:
    """Queue a finished build again; an open build stays as it is."""
    closed = Build.objects.filter(pk=build.pk).exclude(state__in=OPEN_STATES)
    fields = {} if priority is None else {"priority": priority}
    if closed.update(**work.REQUEUED_FIELDS, **fields):
        queue.notify(queue.Kind.COMPILE)


def run_build(build: Build) -> None:
    """Run a claimed build, or request it again if its compiler is gone.

    Raises ``work.LeaseLostError`` when another worker has claimed it, or it was cancelled.
    """
    requested = build.toolchain, build.toolchain_version, build.toolchain_digest
    recipe = _recipe(build)
    same = [
        candidate
        for candidate in compilers.available_toolchains()
        if _toolchain_key(candidate) == requested
    ]
    # If several backends use that program, the one that builds for the target is preferred.
    toolchain = next(
        (candidate for candidate in same if not recipe.obstacle(candidate)), next(iter(same), None)
    )
    if toolchain is None:
        with transaction.atomic():
            _replace_orphaned(build)
        return
    kernel, cancellation = build.kernel, Cancellation()
    with work.heartbeat(build, cancellation.cancel):
        try:
            result = compiler.build(
                kernel.source,
                kernel.name,
                targets.find(build.target),
                toolchain,
                compilers.code_cache(),
                Flags(tuple(build.flags)),
                cancellation=cancellation,
                source_file=kernel.source_file,
                # A retried build is compiled, whatever failure is cached.
                trust_failures=build.attempts <= 1,
            )
        except Cancelled:
            raise work.LeaseLostError(f"build {build.pk} was claimed by another worker") from None
    if isinstance(result, Interrupted):
        raise MachineFaultError(result.reason, of_row=True)
    if isinstance(result, Rejected):
        _record_failure(build, result)
        return
    stored = stored_files(result, recipe)  # before the row is locked: a disk may be slow
    with transaction.atomic():
        work.finish(
            build,
            State.DONE,
            code_digest=result.code_digest,
            duration_s=result.duration_s,
            cached=result.cached,
            log=result.log,
            diagnostics=_diagnostics(recipe, result.log),
            resources=dict(result.resources),
            **stored,
        )
        build_finished.send(Build, build=build)
        automatic.model_default(build)
        build_events.on_build_finished(build)


def local_builds() -> QuerySet[Build]:
    """Return the builds whose compiler is on this host."""
    keys = map(_toolchain_key, compilers.available_toolchains())
    return Build.objects.filter(_toolchain_filter(keys)).select_related("kernel")


def replace_orphaned() -> int:
    """Replace builds that wait for a compiler that no worker has any more; return how many.

    They were queued before a compiler or its headers changed. Whatever waits for such a build then
    waits for the build with this host's compiler.
    """
    available = {_toolchain_key(toolchain) for toolchain in compilers.available_toolchains()}
    for worker in Worker.objects.all():
        if worker.is_alive:
            available |= {
                (toolchain["name"], toolchain["version"][:200], toolchain["digest"])
                for toolchain in worker.toolchains
                if "digest" in toolchain
            }
    count = 0
    orphans = Build.objects.exclude(_toolchain_filter(available)).select_related("kernel")
    while (build := work.claim_next(orphans, work.worker_name())) is not None:
        try:
            with transaction.atomic():
                _replace_orphaned(build)
        except MachineError:
            work.requeue(build)
            raise
        count += 1
    return count


def _replace_orphaned(build: Build) -> None:
    """Close a claimed build and replace it by the same build with this host's compiler."""
    try:
        new = request_builds(
            [build.kernel], build.target, Flags(tuple(build.flags)), build.priority
        )[build.kernel_id]
    except MachineError:
        raise
    except UserError as error:
        _record_failure(build, Rejected(Stage.COMPILE, str(error)))
        return
    compiler = f"{new.toolchain} {new.toolchain_version}"
    reason = f"requested again with {compiler}: this compiler, or its headers, has changed"
    work.finish(build, State.CANCELLED, stage=Stage.COMPILE, reason=reason)
    build_replaced.send(Build, build=build, new=new)
    build_events.on_build_replaced(build, new)
    if new.state not in OPEN_STATES:
        build_finished.send(Build, build=new)


def _toolchain_filter(keys: Iterable[tuple[str, str, str]]) -> Q:
    condition = Q(pk__in=[])
    for name, version, digest in keys:
        condition |= Q(toolchain=name, toolchain_version=version, toolchain_digest=digest)
    return condition


def _toolchain_key(toolchain: Toolchain) -> tuple[str, str, str]:
    return toolchain.name, toolchain.version[:200], toolchain.path_digest


def _record_failure(build: Build, rejected: Rejected) -> None:
    """Record a failure; candidates that waited for the build fail with it."""
    with transaction.atomic():
        work.finish(
            build,
            State.REJECTED,
            stage=rejected.stage,
            reason=rejected.reason,
            log=rejected.detail,
            diagnostics=_diagnostics(_recipe(build), rejected.detail),
        )
        build_finished.send(Build, build=build)
        build_events.on_build_finished(build)


def _recipe(build: Build) -> Recipe:
    return recipe_of(targets.find(build.target), build.kernel.source_file)


def stored_files(result: Built, recipe: Recipe) -> dict[str, Artifact | None]:
    """Return the files of a build by field; None for a file that this compiler does not make."""
    made_files = recipe.files_with(result.toolchain)
    files = {
        "listing": recipe.listing_file,
        "code_object": recipe.code_object_file,
        "intermediate": recipe.intermediate_file,
        "library": recipe.library_file,
    }
    return {
        field: artifacts.store_file(result.directory / name) if name in made_files else None
        for field, name in files.items()
    }


def _diagnostics(recipe: Recipe, log: str) -> list[dict[str, object]]:
    return [asdict(diagnostic) for diagnostic in recipe.diagnostics(log)]
