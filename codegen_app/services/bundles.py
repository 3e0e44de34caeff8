"""Bundles for download: a graph's kernels, or one, with what any HIP launcher needs to run them.

The format is the command line's (``scheduler/bundle``); builds come from the rows.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from codegen_app.models import Build, GeneratedKernel, Graph, State, TemplateNode
from codegen_app.services import artifacts, choices, engine
from scheduler import pipeline, targets
from scheduler.build.flags import DEFAULT
from scheduler.build.model import Build as Built
from scheduler.build.model import Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.bundle import writer
from scheduler.bundle.manifest import Manifest
from scheduler.codegen import layout
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.fusion.nodes import Schedule
from scheduler.ir.operations import Buffer, BufferKind
from scheduler.outcome import UserError

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bundle is the same bytes, whenever it is taken
_GIVEN = (BufferKind.INPUT, BufferKind.PARAMETER, BufferKind.CONSTANT)


def of_graph(graph: Graph, times: str = "") -> IO[bytes]:
    """The whole graph as a zip, for every target that all of its kernels are built for.

    Each node has the kernel that serves it in the bucket ``times``, the latest of a GPU without
    it. Raises ``UserError`` where there is no such bucket or target, or a file is missing.
    """
    generated = choices.of_graph(graph, times).generated()
    names = [kernel.name for kernel in generated.kernels]
    builds = _builds(names)
    complete = _complete(builds, names)
    if not complete:
        raise UserError(f"{graph.name}: no target has a build of every kernel yet")
    manifest = replace(generated.manifest(), targets=complete)
    folder = layout.bundle_folder(graph.name, graph.digest)
    return _zipped(folder, generated.schedule, manifest, generated.kernels, builds)


def of_kernel(kernel: GeneratedKernel, node: TemplateNode) -> IO[bytes]:
    """One kernel as it serves a node: what it reads are the bundle's inputs, what it writes the
    outputs. For every target that it is built for.

    Raises ``UserError`` where it is not built, a file is missing, or this version of the generator
    does not make it for that node.
    """
    scheduled = engine.scheduled(node.graph.file.digest)
    caller = engine.callers(node.graph.file.digest, node.name).get(kernel.name)
    if caller is None:
        raise UserError(f"{kernel.name}: this version of the generator does not make it for {node}")
    plan = scheduled.named(node.graph.name)
    backend = pipeline.scheduling(plan, scheduled.backend.targets)
    rendered, call = backend.codegen(scheduled.node(node.name), caller)
    builds = _builds([kernel.name])
    if not builds:
        raise UserError(f"{kernel.name} is not built for any target yet")
    manifest = _alone(
        writer.manifest_of(plan, _complete(builds, [kernel.name]), [rendered], [call], []),
        rendered,
        call,
    )
    folder = layout.bundle_folder(kernel.name, kernel.source_digest)
    return _zipped(folder, plan, manifest, [rendered], builds)


def _alone(manifest: Manifest, kernel: RenderedKernel, call: KernelCall) -> Manifest:
    """The manifest with this call's buffers alone, each with memory of its own."""
    written = {call.args[arg.name] for arg in kernel.args if arg.is_output}
    used = [value for value in call.args.values() if isinstance(value, str)]
    buffers = {name: _given(manifest.buffers[name], name in written) for name in used}
    return replace(
        manifest,
        buffers=buffers,
        inputs=tuple(name for name, buffer in buffers.items() if buffer.kind in _GIVEN),
        outputs=tuple(name for name in buffers if name in written),
        storage={},
        pools={},
    )


def _given(buffer: Buffer, written: bool) -> Buffer:
    """What other kernels would have made is given; what is written is made here."""
    if written:
        return replace(buffer, kind=BufferKind.OUTPUT)
    return buffer if buffer.kind in _GIVEN else replace(buffer, kind=BufferKind.INPUT)


def _builds(names: Sequence[str]) -> dict[tuple[str, str], Build]:
    """The latest build of each kernel and target, with the default flags where there is one."""
    rows = (
        Build.objects.filter(kernel__name__in=names, state=State.DONE)
        .select_related("kernel", "listing", "code_object", "library")
        .order_by("created_at", "pk")
    )
    default = list(DEFAULT.values)
    ranked = sorted(rows, key=lambda row: row.flags == default)
    return {(row.kernel.name, row.target): row for row in ranked}


def _complete(builds: Mapping[tuple[str, str], Build], names: Sequence[str]) -> tuple[str, ...]:
    """The targets that all of these kernels are built for, in their usual order."""
    return tuple(
        target for target in targets.names() if all((name, target) in builds for name in names)
    )


def _zipped(
    top: str,
    schedule: Schedule,
    manifest: Manifest,
    kernels: Sequence[RenderedKernel],
    rows: Mapping[tuple[str, str], Build],
) -> IO[bytes]:
    """The bundle, written by the engine and packed with ``top`` as its one folder; an open file
    that is gone once closed."""
    packed = tempfile.TemporaryFile(suffix=".zip")  # noqa: SIM115 - the caller closes it
    with tempfile.TemporaryDirectory() as folder:
        builds = {
            key: _built(row, Path(folder, "builds", str(row.pk)))
            for key, row in rows.items()
            if key[1] in manifest.targets
        }
        out = Path(folder, "bundle")
        writer.write(out, schedule, manifest, kernels, builds)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path for path in out.rglob("*") if path.is_file()):
                info = zipfile.ZipInfo(f"{top}/{file.relative_to(out)}", _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, file.read_bytes())
    packed.seek(0)
    return packed


def _built(row: Build, folder: Path) -> Built:
    """A row as the engine's build, its files in a folder under the names that a bundle uses."""
    folder.mkdir(parents=True)
    recipe = recipe_of(targets.find(row.target))
    files = (
        (recipe.listing_file, row.listing),
        (recipe.code_object_file, row.code_object),
        (recipe.library_file, row.library),
    )
    for name, artifact in files:
        if artifact is None:
            continue
        try:
            file = artifacts.local_file(artifact, Path(name).suffix).resolve(strict=True)
        except FileNotFoundError:
            missing = f"{name} of {row.kernel} for {row.target} is missing from the storage"
            raise UserError(f"{missing}: build it again") from None
        (folder / name).symlink_to(file)
    return Built(
        target=row.target,
        toolchain=Toolchain(row.toolchain, row.toolchain_version, row.toolchain_digest),
        flags=tuple(row.flags),
        source_digest=row.kernel.source_digest,
        code_digest=row.code_digest,
        duration_s=row.duration_s or 0.0,
        log=row.log,
        directory=folder,
        resources=row.resources,
        cached=row.cached,
    )
