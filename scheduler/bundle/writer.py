"""Writes a bundle atomically and deterministically."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sympy

from scheduler.build.model import Build
from scheduler.build.recipe import recipe_of
from scheduler.bundle.manifest import (
    SUPPLIED_KINDS,
    ChosenBy,
    ExternEntry,
    LoopEntry,
    Manifest,
    MutationEntry,
    kernel_entry,
)
from scheduler.codegen import bundle_paths
from scheduler.codegen.kernel import KernelCall, RenderedKernel
from scheduler.codegen.wrapper import render_wrapper
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.graph import Guard, Relation
from scheduler.ir.serialize import graph_to_json
from scheduler.targets import find

_DIGEST = re.compile(r"[0-9a-f]{64}")
# Files of a bundle's folder, including those that tuning and running the wrapper create.
_BUNDLE_FILES = frozenset(
    (
        *(bundle_paths.MANIFEST, bundle_paths.GRAPH, bundle_paths.WRAPPER, bundle_paths.KERNELS),
        *(bundle_paths.LEDGER, bundle_paths.LOG, bundle_paths.RESULTS, "__pycache__"),
    )
)


def manifest_of(
    schedule: Schedule,
    targets: Sequence[str],
    kernels: Sequence[RenderedKernel],
    calls: Sequence[KernelCall],
    externs: Sequence[ExternEntry],
    chosen_by: ChosenBy | None = None,
    loops: Sequence[LoopEntry] = (),
) -> Manifest:
    """Return the manifest of a schedule; ``chosen_by`` is the source of the selection's times."""
    lowered = schedule.lowered
    graph = lowered.graph
    symbols = dict(graph.symbols)
    guards = list(graph.guards)
    for expr in lowered.nonzero:  # conditions of the model's ops
        if expr.is_Symbol:
            symbol = symbols[expr.name]
            symbols[expr.name] = replace(symbol, minimum=max(symbol.minimum, 1))
        else:
            guards.append(Guard((Relation(expr, ">=", sympy.Integer(1)),)))
    # Buffers of inputs come first, in the graph's order.
    tensors = [
        graph_input.name for graph_input in graph.inputs if graph_input.name in graph.tensors
    ]
    inputs = [name for name, buffer in lowered.buffers.items() if buffer.kind in SUPPLIED_KINDS]
    buffer_of = dict(zip(tensors, inputs, strict=True))
    return Manifest(
        graph_name=graph.name,
        graph_digest=graph.digest,
        symbols=dict(sorted(symbols.items())),
        targets=tuple(targets),
        buffers=lowered.buffers,
        kernels={
            kernel.name: kernel_entry(kernel)
            for kernel in sorted(kernels, key=lambda kernel: kernel.name)
        },
        calls=tuple(calls),
        externs=tuple(externs),
        loops=tuple(loops),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        mutations=tuple(
            MutationEntry(mutation.output, buffer_of[mutation.input])
            for mutation in graph.mutations
        ),
        constant_outputs=graph.constant_outputs,
        storage=schedule.storage,
        pools=schedule.pools,
        fused=schedule.fused,
        split=schedule.split,
        chosen_by=chosen_by,
        float32_matmul_precision=graph.float32_matmul_precision,
        guards=tuple(guards),
        assertions=lowered.assertions,
    )


def wrapper_of(manifest: Manifest) -> str:
    """Return the text of ``wrapper.py`` of a bundle with this manifest."""
    libraries = {name: recipe_of(find(name)).library_file for name in manifest.targets}
    return render_wrapper(manifest.to_json(), libraries)


def bundle_texts(schedule: Schedule, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the text files of the bundle as a whole: path and text."""
    yield bundle_paths.MANIFEST, _json(manifest.to_json())
    yield bundle_paths.GRAPH, _json(graph_to_json(schedule.lowered.graph))
    yield bundle_paths.WRAPPER, wrapper_of(manifest)


def build_record(build: Build) -> str:
    """Return the text of the record stored with a build's files."""
    return _json(build.to_json())


def write(
    out: Path,
    schedule: Schedule,
    manifest: Manifest,
    kernels: Sequence[RenderedKernel],
    builds: Mapping[tuple[str, str], Build],
) -> None:
    """Write the bundle to ``out``, replacing an existing bundle.

    ``builds`` maps (kernel, target) to its build. Raises ``UserError`` if ``out`` is a folder
    that is neither empty nor a bundle: no other files are removed.
    """
    check_replaceable(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, under an unrelated name: that of ``out`` may have the maximum length.
    work = Path(tempfile.mkdtemp(prefix=".bundle-", dir=out.parent))
    try:
        new_bundle = work / "new"
        new_bundle.mkdir()
        for name, text in bundle_texts(schedule, manifest):
            (new_bundle / name).write_text(text)
        for kernel in kernels:
            _write_kernel(new_bundle, kernel, builds, manifest.targets)
        if out.exists():
            out.rename(work / "old")
        new_bundle.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_replaceable(out: Path) -> None:
    """Raise ``UserError`` unless ``out`` is absent, empty, or contains only a bundle."""
    if out.is_symlink():
        raise UserError(f"{out} is a link: use the folder itself")
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file: choose a folder for the bundle")
    names = {path.name for path in out.iterdir()}
    if not names:
        return
    try:  # a bundle of any version
        manifest = json.loads((out / bundle_paths.MANIFEST).read_text())
        is_bundle = manifest["schema"] >= 1 and _DIGEST.fullmatch(manifest["graph"]["digest"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        is_bundle = False
    if not is_bundle:
        raise UserError(f"{out} is not empty and not a bundle: choose another folder")
    if other_names := names - _BUNDLE_FILES:
        raise UserError(
            f"{out} contains {min(other_names)}, which is not part of a bundle: move it, or "
            "choose another folder"
        )


def _write_kernel(
    out: Path,
    kernel: RenderedKernel,
    builds: Mapping[tuple[str, str], Build],
    targets: Sequence[str],
) -> None:
    (out / bundle_paths.kernel_folder(kernel.name)).mkdir(parents=True)
    (out / kernel.source_path).write_text(kernel.source)
    for target in targets:
        build = builds.get((kernel.name, target))
        if build is None:
            continue
        folder = out / bundle_paths.build_folder(kernel.name, target)
        folder.mkdir()
        for name in recipe_of(find(target), kernel.source_file).files:
            if (build.directory / name).is_file():
                shutil.copyfile(build.directory / name, folder / name)
        (folder / bundle_paths.BUILD_RECORD).write_text(build_record(build))


def _json(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"
