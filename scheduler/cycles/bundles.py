"""Models each kernel of a bundle at some sizes once."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.build.rocm.commands import LISTING
from scheduler.bundle.manifest import request_of
from scheduler.bundle.reader import Bundle
from scheduler.codegen import bundle_paths
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg
from scheduler.cycles.kernel_model import Limits, model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.report import Report
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings
from scheduler.ir.index.functions import evaluate
from scheduler.targets import Board, Target


def model_bundle(
    bundle: Bundle,
    target: Target,
    board: Board,
    bindings: Bindings,
    asked: str = "",
    limits: Limits = Limits(),
) -> Iterator[tuple[str, str, Report]]:
    """Yield each kernel that runs at the bindings, once, with its listing and report, in the order
    of the first calls. ``asked`` selects one kernel by name. Raises ``UserError``."""
    manifest = bundle.manifest
    if asked and asked not in manifest.kernels:
        raise UserError(f"the bundle has no kernel {asked}")
    done: set[tuple[object, ...]] = set()
    for call in manifest.calls:
        name = call.select_variant(bindings).kernel
        if asked and name != asked:
            continue
        entry = manifest.kernels[name]
        request = request_of(manifest, call, target.name, bindings)
        problem = (name, _request_key(request))
        if problem in done:
            continue
        done.add(problem)
        file = bundle.folder / bundle_paths.build_folder(name, target.name) / LISTING
        if not file.is_file():
            raise UserError(f"the bundle was not built for {target.name}: {name} has no listing")
        listing = file.read_text("utf-8")
        workspace = evaluate(entry.workspace_bytes, request.numbers)
        launches, memory = prepare_launches(entry.launches, request, workspace_bytes=workspace)
        sizes = {key: int(value) for key, value in bindings.items()}
        yield (
            name,
            listing,
            model_kernel(
                *(listing, target, board, launches, memory),
                kernel=name,
                sizes=sizes,
                limits=limits,
            ),
        )


def _request_key(request: BenchmarkRequest) -> tuple[object, ...]:
    """Return the parts of a request that decide its figures: sizes, strides, and which buffers are
    shared."""
    numbers: dict[str, int] = {}
    key_parts: list[object] = []
    for arg in request.args:
        if isinstance(arg, ScalarArg):
            key_parts.append((arg.name, arg.value))
            continue
        number = numbers.setdefault(arg.buffer, len(numbers))
        key_parts.append((arg.name, arg.dtype, tuple(arg.size), tuple(arg.stride), number))
    return tuple(key_parts)
