"""Reads a bundle, which is untrusted: it is checked against the schema before use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from scheduler.build.recipe import recipe_of
from scheduler.bundle.manifest import SUPPLIED_KINDS, LoopEntry, Manifest
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError
from scheduler.ir.check import check_constants
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Graph
from scheduler.ir.index.parser import check_name
from scheduler.ir.serialize import graph_from_json
from scheduler.targets import find

MAX_BYTES = 256 * 2**20
_SCHEMA = Path(__file__).with_name("schema.json")


@dataclass(frozen=True)
class Bundle:
    """An opened bundle."""

    folder: Path
    manifest: Manifest

    @cached_property
    def graph(self) -> Graph:
        """The model's graph. Raises ``UserError`` if ``graph.json`` is damaged."""
        graph = graph_from_json(_read_json(self.folder / bundle_paths.GRAPH))
        if graph.digest != self.manifest.graph_digest:
            raise UserError(
                f"{self.folder}: {bundle_paths.GRAPH} and {bundle_paths.MANIFEST} belong "
                "to different models"
            )
        return graph

    def library(self, kernel: str, target: str) -> Path:
        """Return a kernel's shared library. Raises ``UserError`` if the bundle has none."""
        source = Path(self.manifest.kernels[kernel].source).name
        library = recipe_of(find(target), source).library_file
        path = self.folder / bundle_paths.build_folder(kernel, target) / library
        if not path.is_file():
            raise UserError(
                f"{self.folder} has no build of {kernel} for {target}: compile the model for"
                f" {target} too"
            )
        return path


def open_bundle(folder: Path) -> Bundle:
    """Open a bundle. Raises ``UserError`` naming the missing or malformed part."""
    path = folder / bundle_paths.MANIFEST
    if not path.is_file():
        raise UserError(f"{folder} is not a bundle: {bundle_paths.MANIFEST} is missing")
    data = _read_json(path)
    import jsonschema  # noqa: PLC0415 -- takes a second where checkers of formats are installed too

    validator = jsonschema.Draft202012Validator(json.loads(_SCHEMA.read_text()))
    error = next(iter(validator.iter_errors(data)), None)
    if error is not None:
        raise UserError(f"{path}: {error.json_path}: {error.message[:200]}")
    manifest = Manifest.from_json(data, str(path))
    _check_names(manifest, path)
    _check_assertions(manifest, path)
    _check_symbols(manifest, path)
    _check_loops(manifest, path)
    return Bundle(folder, manifest)


def _check_names(manifest: Manifest, path: Path) -> None:
    """Check that every name that is used is defined."""
    for call in manifest.calls:
        _check_call(manifest, path, call.kernel, call.args)
        for variant in call.variants:
            _check_call(manifest, path, variant.kernel, variant.args)
            if variant.symbol not in manifest.symbols:
                raise UserError(f"{path}: a call depends on {variant.symbol}, which is not a size")
    referenced = [name for entry in manifest.externs for name in (*entry.outputs, *entry.inputs)]
    referenced += [name for loop in manifest.loops for name in _buffers_of(loop)]
    referenced += [assertion.buffer for assertion in manifest.assertions]
    for name in (*manifest.inputs, *manifest.outputs, *manifest.storage, *referenced):
        if name not in manifest.buffers:
            raise UserError(f"{path}: the buffer {name} is not defined")
    for name, pool in manifest.storage.items():
        if pool not in manifest.pools:
            raise UserError(f"{path}: {name} is in {pool}, which is not defined")
    for mutation in manifest.mutations:
        input_buffer = manifest.buffers.get(mutation.input)
        if (
            input_buffer is None
            or input_buffer.kind not in SUPPLIED_KINDS
            or mutation.output >= len(manifest.outputs)
        ):
            raise UserError(f"{path}: {mutation.input} is written back, but is not an input")
    check_constants(manifest.constant_outputs, len(manifest.outputs) - len(manifest.mutations))
    for extern in manifest.externs:
        if extern.position > len(manifest.calls):
            raise UserError(f"{path}: the extern {extern.node} runs after the last call")


def _check_assertions(manifest: Manifest, path: Path) -> None:
    for assertion in manifest.assertions:
        buffer = manifest.buffers[assertion.buffer]
        valid_indices = (
            range(int(buffer.size[0])) if buffer.size and buffer.size[0].is_Integer else ()
        )
        if (
            buffer.dtype is not DType.BOOL
            or len(buffer.size) != 1
            or assertion.place not in valid_indices
        ):
            raise UserError(f"{path}: {assertion.buffer} has no boolean at {assertion.place}")


def _buffers_of(loop: LoopEntry) -> Iterator[str]:
    for carried in loop.carried:
        yield from (carried.before, carried.inside, carried.next, carried.after)
    for part in (*loop.reads, *loop.makes):
        yield from (part.whole, part.slice)
    yield from (name for name in (loop.condition, loop.again) if name)


def _check_loops(manifest: Manifest, path: Path) -> None:
    """Check that each loop ends, has a step count or conditions, and its own memory."""
    try:
        _ = manifest.program
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    for loop in manifest.loops:
        what = f"{path}: the loop {loop.node}"
        if (loop.steps is None) is not bool(loop.condition and loop.again):
            raise UserError(f"{what} must have either a step count or conditions")
        if shared := set(_buffers_of(loop)) & set(manifest.storage) - {loop.condition, loop.again}:
            raise UserError(f"{what} needs its own memory for {min(shared)}")
        for entry in (*loop.reads, *loop.makes):
            if not manifest.buffers[entry.whole].size:
                raise UserError(f"{what}: {entry.whole} has no dimension to slice")
        for name in (loop.condition, loop.again):
            if name and manifest.buffers[name].dtype is not DType.BOOL:
                raise UserError(f"{what}: {name} is not a boolean")


def _check_symbols(manifest: Manifest, path: Path) -> None:
    """Check that every expression uses known symbols only."""
    symbols = set(manifest.symbols)
    for name in manifest.symbols:
        check_name(name)
    for name, buffer in manifest.buffers.items():
        _check_known(symbols, path, f"buffer {name}", *buffer.size, *buffer.stride)
    for name, size in manifest.pools.items():
        _check_known(symbols, path, f"pool {name}", size)
    for loop in manifest.loops:
        if loop.steps is not None:
            _check_known(symbols, path, f"the loop {loop.node}", loop.steps)
    for call in manifest.calls:
        for args in (call.args, *(variant.args for variant in call.variants)):
            values = (value for value in args.values() if not isinstance(value, str))
            _check_known(symbols, path, f"a call of {call.kernel}", *values)
    for name, kernel in manifest.kernels.items():
        kernel_names = symbols | {arg.name for arg in kernel.args}
        grids = (size for launch in kernel.launches for size in launch.grid)
        _check_known(kernel_names, path, f"kernel {name}", kernel.workspace_bytes, *grids)


def _check_known(symbols: set[str], path: Path, what: str, *exprs: Expr) -> None:
    for expr in exprs:
        undefined = {str(symbol) for symbol in expr.free_symbols} - symbols
        if undefined:
            raise UserError(f"{path}: {what}: {min(undefined)} is not a size of the model")


def _check_call(manifest: Manifest, path: Path, name: str, args: Mapping[str, object]) -> None:
    kernel = manifest.kernels.get(name)
    if kernel is None:
        raise UserError(f"{path}: a call uses the kernel {name}, which is not defined")
    missing = {arg.name for arg in kernel.args} - set(args)
    if missing:
        raise UserError(f"{path}: a call of {name} is missing {', '.join(sorted(missing))}")
    for arg in kernel.args:
        if arg.type == "ptr" and args[arg.name] not in manifest.buffers:
            raise UserError(f"{path}: a call of {name} must pass a buffer for {arg.name}")


def _read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path} exceeds the limit of {MAX_BYTES // 2**20} MiB")
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None
