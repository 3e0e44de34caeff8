"""A model's kernels on torch's own memory and stream, so that both are timed in one process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build
from scheduler.build.recipe import library_of
from scheduler.build.toolchains import Search, find_for, preferred
from scheduler.bundle.manifest import Manifest
from scheduler.ir.bindings import Bindings, hints
from scheduler.ir.graph import InputKind
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import BufferKind
from scheduler.ir.storage import bind_buffer
from scheduler.outcome import UserError
from scheduler.runtime.library import ExportedKernel, Library
from scheduler.targets import Target


@dataclass(frozen=True)
class Compiled:
    """Kernels of one exported program, built for one target."""

    manifest: Manifest
    libraries: Mapping[str, Path]
    bindings: Bindings
    sources: Mapping[str, str]
    """Of each buffer that is given: the name of the model's parameter, "" for an input."""

    inputs: tuple[str, ...]
    """The buffers of the user's inputs, in order."""


def compiled(program: Any, target: Target, cache: CodeCache) -> Compiled:
    """Every kernel by its default configuration. Raises ``UserError`` where one is rejected."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt2")
        torch.export.save(program, path)
        graph = pipeline.load(path)
    plan = pipeline.schedule(pipeline.lower(graph))
    generated = pipeline.generate(plan, [target])
    if generated.externs:
        raise UserError(f"no kernel: {generated.externs[0].op}: {generated.externs[0].reason}")
    toolchain = preferred(find_for(target, Search(cache=cache)), target)
    built = pipeline.build_kernels(generated.kernels, [target], lambda _: toolchain, cache)
    libraries = {}
    for (name, _), result in built.items():
        if not isinstance(result, Build):
            raise UserError(f"{name}: {result.reason}")
        libraries[name] = library_of(result)
    given = [value for value in graph.inputs if value.kind is InputKind.USER]
    by_source = {b.source_name: name for name, b in generated.manifest().buffers.items()}
    return Compiled(
        generated.manifest(),
        libraries,
        hints(graph.symbols),
        {name: b.source_name for name, b in generated.manifest().buffers.items()},
        tuple(by_source[value.source_name or value.name] for value in given),
    )


class OnTorch:
    """The kernels loaded, their buffers torch's. Call it to launch all on the current stream."""

    def __init__(
        self, made: Compiled, program: Any, inputs: tuple[torch.Tensor, ...], bindings: Bindings
    ) -> None:
        self._made, self._bindings = made, bindings
        self.buffers = {n: bind_buffer(b, bindings) for n, b in made.manifest.buffers.items()}
        self.tensors = self._given(program, inputs)
        pools: dict[str, torch.Tensor] = {}
        for name in made.manifest.buffers:
            if name not in self.tensors:
                self.tensors[name] = self._memory(name, pools)
        self._workspaces: list[torch.Tensor] = []
        self._launches = self._prepared()

    def __call__(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        for launch in self._launches:
            launch(stream)

    def output(self, position: int = 0) -> torch.Tensor:
        """An output as torch has it."""
        name = self._made.manifest.outputs[position]
        buffer = self.buffers[name]
        flat = self.tensors[name].view(getattr(torch, buffer.dtype.torch.removeprefix("torch.")))
        return flat.as_strided(buffer.size, buffer.stride)

    def _given(self, program: Any, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        known = {**program.state_dict, **program.constants}
        found = dict(zip(self._made.inputs, inputs, strict=True))
        for name, buffer in self._made.manifest.buffers.items():
            if name not in found and buffer.kind in (BufferKind.PARAMETER, BufferKind.CONSTANT):
                found[name] = known[self._made.sources[name]].detach().to("cuda")
        return found

    def _memory(self, name: str, pools: dict[str, torch.Tensor]) -> torch.Tensor:
        manifest = self._made.manifest
        pool = manifest.storage.get(name)
        if pool is None:
            return _bytes(self.buffers[name].nbytes)
        if pool not in pools:
            pools[pool] = _bytes(evaluate(manifest.pools[pool], self._bindings))
        return pools[pool]

    def _prepared(self) -> list[Callable[[int], None]]:
        launches = []
        functions: dict[str, Any] = {}
        for each in self._made.manifest.calls:
            call = each.at(self._bindings)
            entry = self._made.manifest.kernels[call.kernel]
            if call.kernel not in functions:
                functions[call.kernel] = Library(self._made.libraries[call.kernel])
            function = functions[call.kernel].function(entry.symbol)
            types = [arg.type for arg in entry.args]
            args = [
                self.tensors[value].data_ptr()
                if isinstance(value, str)
                else evaluate(value, self._bindings)
                for value in (call.args[arg.name] for arg in entry.args)
            ]
            needed = ExportedKernel(function, types, 0, _raise_for).workspace_bytes(args)
            workspace = _bytes(needed)
            self._workspaces.append(workspace)
            launches.append(_launch(function, types, args, workspace.data_ptr() if needed else 0))
        return launches


def _launch(
    function: Any, types: list[str], args: list[Any], workspace: int
) -> Callable[[int], None]:
    ready: dict[int, Callable[[], None]] = {}

    def launch(stream: int) -> None:
        if stream not in ready:
            ready[stream] = ExportedKernel(function, types, stream, _raise_for).prepared(
                args, workspace
            )
        ready[stream]()

    return launch


def _bytes(count: int) -> torch.Tensor:
    return torch.empty(max(count, 1), dtype=torch.uint8, device="cuda")


def _raise_for(code: int) -> None:
    if code:
        raise RuntimeError(f"a kernel's function returned the driver's status {code}")
