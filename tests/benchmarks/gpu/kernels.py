"""Built kernels on torch's own memory and stream, so that both are timed in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import BufferKind
from scheduler.ir.storage import bind_buffer
from scheduler.runtime.cuda import open_library
from scheduler.runtime.library import ExportedKernel
from tests.benchmarks.gpu.making import Made
from tests.benchmarks.gpu.problem import Loaded
from tests.benchmarks.gpu.timing import captured, elapsed

_LAUNCHES, _SAMPLES = 5, 5


class OnTorch:
    """The kernels loaded, their buffers torch's. Call it to launch all on the current stream."""

    def __init__(self, made: Made, problem: Loaded) -> None:
        self._made, self._bindings = made, made.bindings
        self._buffers = {n: bind_buffer(b, made.bindings) for n, b in made.manifest.buffers.items()}
        self._tensors = self._given(problem)
        pools: dict[str, torch.Tensor] = {}
        for name in made.manifest.buffers:
            if name not in self._tensors:
                self._tensors[name] = self._memory(name, pools)
        self._workspaces: list[torch.Tensor] = []
        self._launches = self._prepared()

    def __call__(self) -> torch.Tensor:
        """The first output as torch has it."""
        stream = torch.cuda.current_stream().cuda_stream
        for launch in self._launches:
            launch(stream)
        return self._output()

    @property
    def launches(self) -> int:
        return len(self._launches)

    def times(self) -> tuple[tuple[str, float], ...]:
        """The kernel and microseconds of each launch by itself, in their order: the least of a few,
        so that one kernel can be chosen before another."""
        self()
        launches = zip(self._made.manifest.calls, self._launches, strict=True)
        return tuple((call.kernel, self._time(launch)) for call, launch in launches)

    def _time(self, launch: Callable[[int], None]) -> float:
        def several() -> None:
            for _ in range(_LAUNCHES):
                launch(torch.cuda.current_stream().cuda_stream)

        graph = captured(several)
        return min(elapsed(graph) for _ in range(_SAMPLES)) / _LAUNCHES

    def _output(self) -> torch.Tensor:
        name = self._made.manifest.outputs[0]
        buffer = self._buffers[name]
        flat = self._tensors[name].view(getattr(torch, buffer.dtype.torch.removeprefix("torch.")))
        return flat.as_strided(buffer.size, buffer.stride)

    def _given(self, problem: Loaded) -> dict[str, torch.Tensor]:
        known = {**problem.program.state_dict, **problem.program.constants}
        found = dict(zip(self._made.inputs, problem.inputs, strict=True))
        for name, buffer in self._made.manifest.buffers.items():
            if name not in found and buffer.kind in (BufferKind.PARAMETER, BufferKind.CONSTANT):
                found[name] = known[buffer.source_name].detach().to("cuda")
        return found

    def _memory(self, name: str, pools: dict[str, torch.Tensor]) -> torch.Tensor:
        manifest = self._made.manifest
        pool = manifest.storage.get(name)
        if pool is None:
            return _bytes(self._buffers[name].nbytes)
        if pool not in pools:
            pools[pool] = _bytes(evaluate(manifest.pools[pool], self._bindings))
        return pools[pool]

    def _prepared(self) -> list[Callable[[int], None]]:
        launches = []
        functions: dict[str, Any] = {}
        for each in self._made.manifest.calls:
            call = each.select_variant(self._bindings)
            entry = self._made.manifest.kernels[call.kernel]
            if call.kernel not in functions:
                functions[call.kernel] = open_library(self._made.libraries[call.kernel])
            function = functions[call.kernel].function(entry.symbol)
            types = [arg.type for arg in entry.args]
            args = [
                self._tensors[value].data_ptr()
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
    function: Any, types: Sequence[str], args: list[Any], workspace: int
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
