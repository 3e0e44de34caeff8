"""Compiling: which builds are wanted, and doing one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.models import (
    Artifact,
    Build,
    GeneratedKernel,
    Graph,
    KernelUse,
    State,
)
from codegen_app.services import artifacts, audit, compilers, ledger, queue, work
from scheduler import targets
from scheduler.build import compile as compiler
from scheduler.build.diagnostics import diagnostics
from scheduler.build.flags import DEFAULT, Flags
from scheduler.build.model import Build as Built
from scheduler.fusion.nodes import GroupKind
from scheduler.outcome import Rejected, Stage

# Templates before loops; what a person asks for before all.
TEMPLATE_KINDS = (GroupKind.GEMM, GroupKind.CONVOLUTION, GroupKind.ATTENTION)
_TEMPLATE, _OTHER, _ASKED_FOR = 20, 10, 30


def request_builds(
    kernels: Iterable[GeneratedKernel],
    target: str,
    flags: Flags = DEFAULT,
    priority: int = 0,
) -> dict[int, Build]:
    """The builds of these kernels for one target, by kernel; those that are new are queued.

    Raises ``UserError`` for an unknown target, or one that no compiler here builds for.
    """
    toolchain = compilers.toolchain_for(target)
    # In one order everywhere: two that ask for the same rows then do not wait for each other.
    wanted = {kernel.pk: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.pk)}
    identity = {
        "target": targets.find(target).name,
        "flags": list(flags.values),
        "toolchain": toolchain.name,
        "toolchain_version": toolchain.version[:200],
        "toolchain_digest": toolchain.path_digest,
    }
    Build.objects.bulk_create(
        (Build(kernel=kernel, priority=priority, **identity) for kernel in wanted.values()),
        ignore_conflicts=True,
    )
    rows = Build.objects.filter(kernel__in=wanted, **identity).select_related("kernel")
    found = {build.kernel_id: build for build in rows}
    rows.filter(state=State.QUEUED, priority__lt=priority).update(priority=priority)
    if waiting := sum(build.state == State.QUEUED for build in found.values()):
        queue.look_now(queue.Kind.COMPILE, waiting)
    return found


def request_defaults(graph: Graph) -> None:
    """Builds of every node's default kernel, for each target that the graph is compiled for."""
    defaults = KernelUse.objects.filter(template_node__graph=graph, is_default=True)
    by_priority: dict[int, list[GeneratedKernel]] = {_TEMPLATE: [], _OTHER: []}
    for use in defaults.select_related("kernel", "template_node"):
        is_template = use.template_node.kind in TEMPLATE_KINDS
        by_priority[_TEMPLATE if is_template else _OTHER].append(use.kernel)
    for priority, kernels in by_priority.items():
        for target in graph.targets if kernels else ():
            request_builds(kernels, target, priority=priority)


@transaction.atomic
def request_build(
    kernel: GeneratedKernel, target: str, flags: Flags, actor: AbstractBaseUser | None
) -> Build:
    """One build that a person asks for. Raises ``UserError`` as ``request_builds``."""
    build = request_builds([kernel], target, flags, priority=_ASKED_FOR)[kernel.pk]
    audit.record(actor, "build", build)
    return build


def run_build(build: Build) -> None:
    """Do a claimed build. Raises ``work.LeaseLostError`` when another worker has it meanwhile."""
    toolchain = compilers.toolchain_for(build.target)
    asked = (build.toolchain, build.toolchain_version, build.toolchain_digest)
    if asked != (toolchain.name, toolchain.version[:200], toolchain.path_digest):
        here = f"{toolchain.name} {toolchain.version}"
        reason = f"asked for with {build.toolchain} {build.toolchain_version}; here is {here}"
        _lost(build, Rejected(Stage.COMPILE, reason, "compiler or headers have changed since"))
        return
    kernel = build.kernel
    with work.heartbeat(build):
        result = compiler.build(
            kernel.source,
            kernel.name,
            targets.find(build.target),
            toolchain,
            compilers.code_cache(),
            Flags(tuple(build.flags)),
        )
    if isinstance(result, Rejected):
        _lost(build, result)
    else:
        _done(build, result)


def _done(build: Build, result: Built) -> None:
    with transaction.atomic():
        work.finish(
            build,
            State.DONE,
            code_digest=result.code_digest,
            duration_s=result.duration_s,
            cached=result.cached,
            log=result.log,
            diagnostics=_diagnostics(result.log),
            resources={name: asdict(one) for name, one in result.resources.items()},
            listing=_artifact(result.directory / "kernel.s"),
            code_object=_artifact(result.directory / "kernel.hsaco"),
            library=_artifact(result.directory / "kernel.so"),
        )
        ledger.build_is_over(build)


def _lost(build: Build, rejected: Rejected) -> None:
    """A build without a result takes the candidates along that waited for it."""
    with transaction.atomic():
        work.finish(
            build,
            State.REJECTED,
            stage=rejected.stage,
            reason=rejected.reason,
            log=rejected.detail,
            diagnostics=_diagnostics(rejected.detail),
        )
        ledger.build_is_over(build)


def _artifact(file: Path) -> Artifact | None:
    return artifacts.store_file(file) if file.exists() else None


def _diagnostics(log: str) -> list[dict[str, object]]:
    return [asdict(diagnostic) for diagnostic in diagnostics(log)]
