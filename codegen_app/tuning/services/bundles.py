"""Bundles for download: a graph's kernels, or one, with all that a HIP launcher needs to run them.

The format is the command line's (``scheduler/bundle``); builds come from the rows. The contents and
the cost of a bundle are known from rows alone before it is packed (``BundleRequest``).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.db.models import F, Value
from django.db.models.functions import Coalesce

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import engine
from codegen_app.platform import artifacts
from codegen_app.tuning.services import choices
from codegen_app.tuning.services.choices import Choices
from codegen_app.web.row import build_row
from codegen_app.workers.models import State
from scheduler import pipeline, targets
from scheduler.agent.version import generator_digest
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.model import Build as Built
from scheduler.build.model import Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.bundle import writer
from scheduler.bundle.manifest import Manifest
from scheduler.codegen import bundle_paths
from scheduler.codegen.kernel import RenderedKernel
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.operations import Buffer, BufferKind

# A bundle within all these limits is packed while the page waits, in a second or two of a core
# (``tests/benchmarks/packing.py``): generating the code scales with the graph's nodes, packing with
# the builds and their bytes.
MAX_NODES, MAX_BUILDS, MAX_BYTES = 300, 200, 16 << 20
MAX_PREPARATION = timedelta(seconds=60)  # a small graph may take long, too

_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that the same bundle always has the same bytes
_INPUT_KINDS = (BufferKind.INPUT, BufferKind.PARAMETER, BufferKind.CONSTANT)

Progress = Callable[[int, int], None]
"""Called with the number of packed kernels and their total."""


@dataclass(frozen=True)
class BundleRequest:
    """A bundle before it is packed: of ``graph``, or of the kernel that ``use`` has at one node.

    ``key`` is the digest of all inputs: equal keys are equal bundles. ``kernels`` and ``targets``
    come from rows; the generator has the last word. ``size_bytes`` is the size of the builds'
    files.
    """

    graph: Graph
    times: str
    choices: Choices | None
    use: KernelUse | None
    key: str
    kernels: int
    targets: tuple[str, ...]
    size_bytes: int

    @property
    def folder(self) -> str:
        """The name of the bundle's one folder, and of the file."""
        return folder_name(self.graph, self.use)

    @property
    def is_quick(self) -> bool:
        """Return whether a page can wait for the bundle."""
        began, ended = self.graph.started_at, self.graph.finished_at
        took = ended - began if began and ended else timedelta(0)
        return (
            self.graph.node_count <= MAX_NODES
            and self.kernels * len(self.targets) <= MAX_BUILDS
            and self.size_bytes <= MAX_BYTES
            and took <= MAX_PREPARATION
        )


def folder_name(graph: Graph, use: KernelUse | None) -> str:
    """Return the name of the one folder in a graph's or kernel's bundle, and of the file."""
    if use is not None:
        return bundle_paths.bundle_folder(use.kernel.name, use.kernel.source_digest)
    return bundle_paths.bundle_folder(graph.name, graph.digest)


@dataclass(frozen=True)
class _BuildRef:
    """The build of a kernel for a target that a bundle contains."""

    pk: int
    code_digest: str
    size_bytes: int


def graph_bundle(graph: Graph, times: str = "") -> BundleRequest:
    """Return a request for the whole graph, for every target that all its kernels are built for.

    Each node has the kernel selected in the bucket ``times``; without it, in a GPU's latest bucket.
    Raises ``UserError`` if there is no such bucket or target.
    """
    chosen = choices.graph_choices(graph, times)
    defaults = KernelUse.objects.filter(template_node__graph=graph, is_default=True)
    served = dict(defaults.values_list("template_node__name", "kernel__name"))
    served |= chosen.selected
    smaller = (name for sizes in chosen.smaller for name in sizes.selected.values())
    names = {*served.values(), *smaller}
    return _bundle_request(graph, times, chosen, None, sorted(names))


def kernel_bundle(use: KernelUse) -> BundleRequest:
    """Return a request for one kernel as a node uses it, for every target that it is built for.

    The kernel's inputs are the bundle's inputs, its outputs the bundle's outputs. Raises
    ``UserError`` if it is not built.
    """
    requested = _bundle_request(use.template_node.graph, "", None, use, [use.kernel.name])
    if not requested.targets:
        raise UserError(f"{use.kernel.name} is not built for any target yet")
    return requested


def _bundle_request(
    graph: Graph, times: str, chosen: Choices | None, use: KernelUse | None, names: Sequence[str]
) -> BundleRequest:
    known = _latest_builds(names)
    complete = _common_targets(known, names)
    if not complete and use is None:
        raise _incomplete(graph, known, names)
    included = {key: build for key, build in sorted(known.items()) if key[1] in complete}
    node = use.template_node.name if use else ""
    contents = (
        *(graph.name, graph.digest, graph.file.digest, generator_digest(), names, node),
        asdict(chosen) if chosen else None,
        [(*key, build.pk, build.code_digest) for key, build in included.items()],
    )
    text = json.dumps(contents, sort_keys=True, default=dict)
    return BundleRequest(
        graph=graph,
        times=times,
        choices=chosen,
        use=use,
        key=hashlib.sha256(text.encode()).hexdigest(),
        kernels=len(names),
        targets=complete,
        size_bytes=sum(build.size_bytes for build in included.values()),
    )


def write(requested: BundleRequest, out: IO[bytes], progress: Progress = lambda *_: None) -> None:
    """Pack the bundle into an open file, one kernel after the other.

    Raises ``UserError`` if a file is missing, or if this version of the generator does not make a
    requested kernel.
    """
    kernels: Sequence[RenderedKernel]
    if requested.use is not None:
        schedule, manifest, kernel = _kernel_parts(requested.graph, requested.use)
        kernels = [kernel]
        known = _latest_builds([kernel.name])
    else:
        assert requested.choices is not None, "a graph's"
        generated = requested.choices.generated()
        schedule, kernels = generated.schedule, generated.kernels
        names = [kernel.name for kernel in kernels]
        known = _latest_builds(names)
        complete = _common_targets(known, names)
        if not complete:
            raise _incomplete(requested.graph, known, names)
        manifest = replace(generated.manifest(), targets=complete)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(path: str, content: str | bytes) -> None:
            info = zipfile.ZipInfo(f"{requested.folder}/{path}", _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)

        for path, text in writer.bundle_texts(schedule, manifest):
            add(path, text)
        for number, kernel in enumerate(kernels):
            progress(number, len(kernels))
            add(kernel.source_path, kernel.source)
            included = [known[kernel.name, target].pk for target in manifest.targets]
            for path, content in _files_of(included):
                add(path, content)
        progress(len(kernels), len(kernels))


def open_bundle(requested: BundleRequest) -> IO[bytes]:
    """Return the bundle as an open temporary file, which is deleted when closed."""
    out = tempfile.TemporaryFile(suffix=".zip")  # noqa: SIM115 - the caller closes it
    try:
        write(requested, out)
    except BaseException:
        out.close()
        raise
    out.seek(0)
    return out


def _kernel_parts(graph: Graph, use: KernelUse) -> tuple[Schedule, Manifest, RenderedKernel]:
    name, node = use.kernel.name, use.template_node
    digest = graph.file.digest
    scheduled = engine.scheduled(digest)
    complete = _common_targets(_latest_builds([name]), [name])
    recorded = engine.kernel_records([name])[name]
    callers = (
        engine.find_caller(digest, node.name, recorded, target) for target in ("", *complete)
    )
    caller = next(filter(None, callers), None)  # for all targets, or for one that it is built for
    if caller is None:
        raise UserError(f"{name}: this version of the generator does not make it for {node}")
    plan = scheduled.with_name(graph.name)
    backend = pipeline.scheduling(plan, scheduled.backend.targets)
    rendered, call = backend.codegen(scheduled.node(node.name), caller)
    if not complete:
        raise UserError(f"{name} is not built for any target yet")
    manifest = writer.manifest_of(plan, complete, [rendered], [call], [])
    # This call's buffers alone, each with its own memory.
    written = {call.args[arg.name] for arg in rendered.args if arg.is_output}
    buffers: dict[str, Buffer] = {}
    for argument in call.args.values():
        if isinstance(argument, str):
            buffer = manifest.buffers[argument]
            if argument in written:
                buffer = replace(buffer, kind=BufferKind.OUTPUT)
            elif buffer.kind not in _INPUT_KINDS:  # made by another kernel
                buffer = replace(buffer, kind=BufferKind.INPUT)
            buffers[argument] = buffer
    manifest = replace(
        manifest,
        buffers=buffers,
        inputs=tuple(key for key, buffer in buffers.items() if buffer.kind in _INPUT_KINDS),
        outputs=tuple(key for key in buffers if key in written),
        mutations=(),
        constant_outputs=(),
        storage={},
        pools={},
    )
    return plan, manifest, rendered


def _latest_builds(names: Sequence[str]) -> dict[tuple[str, str], _BuildRef]:
    """Return the latest build of each kernel and target, with the default flags if there is one."""
    rows = Build.objects.filter(kernel__name__in=names, state=State.DONE)
    files = ("listing", "code_object", "intermediate", "library")
    size = sum((Coalesce(F(f"{file}__size_bytes"), Value(0)) for file in files), Value(0))
    values = rows.order_by("created_at", "pk").values_list(
        "kernel__name", "target", "flags", "pk", "code_digest", size
    )
    default = list(DEFAULT_FLAGS.values)
    ranked = sorted(values, key=lambda row: row[2] == default)
    return {(name, target): _BuildRef(*build) for name, target, _, *build in ranked}


def _common_targets(known: Iterable[tuple[str, str]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that all these kernels are built for, in their usual order."""
    built = set(known)
    return tuple(
        target for target in targets.names() if all((name, target) in built for name in names)
    )


def _incomplete(graph: Graph, known: Iterable[tuple[str, str]], names: Sequence[str]) -> UserError:
    """Return the error for kernels that no target has a build of each of."""
    line = f"{graph.name}: no target has a build of every kernel yet"
    built = Counter(target for _, target in known)
    for target, count in built.most_common(1):
        line += f"; {count} of {len(names)} are built for {target}"
    return UserError(f"{line}: tune the graph, or build each kernel on its page")


def _files_of(builds: Sequence[int]) -> Iterable[tuple[str, bytes | str]]:
    """Yield the files of a kernel's builds, each with its path in the bundle."""
    rows = Build.objects.filter(pk__in=builds).order_by("target")
    related = rows.select_related("kernel", "listing", "code_object", "intermediate", "library")
    for row in related.defer("kernel__source", "detail", "diagnostics"):
        folder = bundle_paths.build_folder(row.kernel.name, row.target)
        recipe = recipe_of(targets.find(row.target), row.kernel.source_file)
        files = {
            recipe.listing_file: row.listing,
            recipe.code_object_file: row.code_object,
            recipe.intermediate_file: row.intermediate,
            recipe.library_file: row.library,
        }
        for name, artifact in files.items():
            if artifact is None:
                continue
            try:
                yield f"{folder}/{name}", artifacts.read(artifact)
            except FileNotFoundError:
                missing = f"{name} of {row.kernel} for {row.target} is missing from the storage"
                raise UserError(f"{missing}: build it again") from None
        build = build_row(
            Built,
            row,
            toolchain=Toolchain(row.toolchain, row.toolchain_version, row.toolchain_digest),
            flags=tuple(row.flags),
            source_digest=row.kernel.source_digest,
            duration_s=row.duration_s or 0.0,
            directory=Path(),
            source_file="",
        )
        yield f"{folder}/{bundle_paths.BUILD_RECORD}", writer.build_record(build)
