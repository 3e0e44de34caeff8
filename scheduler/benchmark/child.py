"""The program that opens one device and one case, loads kernels, checks and times them.

It runs in a separate process, so that a kernel that hangs or crashes affects nothing else.
``benchmark/worker.py`` is the parent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.gate import check_outputs
from scheduler.benchmark.memory import CaseMemory, GuardedBlock
from scheduler.codegen.benchmark_request import TensorArg
from scheduler.runtime.device import Device, DeviceError, LoadedKernel
from scheduler.runtime.devices import open_device
from scheduler.sandbox.rpc import Handler


class _LoadedKernel:
    """A loaded kernel with its arguments for each copy of the buffers, and its workspace."""

    def __init__(self, device: Device, memory: CaseMemory, candidate: BuiltCandidate) -> None:
        self.candidate = candidate
        request = candidate.request
        self.kernel: LoadedKernel = device.load(
            Path(candidate.library), request.symbol, request.arg_types
        )
        self.calls = [
            [
                memory.pointer(arg.buffer, copy) if isinstance(arg, TensorArg) else arg.value
                for arg in request.args
            ]
            for copy in range(memory.copies)
        ]
        needed = self.kernel.workspace_bytes(self.calls[0])
        self.workspace = GuardedBlock(device, needed)


class Session:
    """The state of the process between requests."""

    def __init__(self) -> None:
        self._device: Device | None = None
        self._case: Case | None = None
        self._memory: CaseMemory | None = None
        self._loaded: dict[str, _LoadedKernel] = {}

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request, or with a ``device_error``: the parent then ends the process, since
        its results cannot be trusted after a fault."""
        operations: dict[str, Callable[..., dict[str, Any]]] = {
            "open": self.open,
            "load": self.load,
            "check": self.check,
            "time": self.time,
        }
        try:
            return operations[request.pop("op")](**request)
        except DeviceError as error:
            return {"device_error": str(error)}

    def open(self, device: str, case: str, copies: int) -> dict[str, Any]:
        """Open a case; the device stays open from one case to the next."""
        if self._device is None:
            self._device = open_device(device)
        for loaded in self._loaded.values():
            loaded.workspace.free()
        self._loaded.clear()
        if self._memory is not None:
            self._memory.free()
        self._case = Case.load(Path(case))
        self._memory = CaseMemory(self._device, self._case, copies)
        return {}

    def load(self, candidate: dict[str, Any]) -> dict[str, Any]:
        """Load a candidate's library."""
        assert self._device is not None and self._memory is not None
        built = BuiltCandidate.from_json(candidate)
        loaded = _LoadedKernel(self._device, self._memory, built)
        self._loaded[built.key] = loaded
        return {"workspace_bytes": loaded.workspace.nbytes}

    def check(self, key: str) -> dict[str, Any]:
        """Run a kernel once and compare its outputs."""
        assert self._device is not None and self._memory is not None and self._case is not None
        loaded = self._loaded[key]
        outputs = loaded.candidate.outputs
        self._memory.poison_outputs(outputs)
        loaded.workspace.poison()
        loaded.kernel(loaded.calls[0], loaded.workspace.pointer)
        self._device.synchronize()
        damaged = self._memory.damaged_buffers(outputs)
        if not loaded.workspace.is_intact():
            damaged = (*damaged, "workspace")
        storages = {
            name: self._memory.read(self._case.buffers[name]) for name in self._case.expected
        }
        result = check_outputs(self._case, storages, damaged)
        if damaged:
            self._memory.restore()
        return {"check": asdict(result)}

    def time(self, key: str, batch: int) -> dict[str, Any]:
        """Time launches of a kernel together."""
        assert self._device is not None
        loaded = self._loaded[key]
        calls = loaded.calls
        launches = [
            (loaded.kernel, calls[i % len(calls)], loaded.workspace.pointer) for i in range(batch)
        ]
        return asdict(self._device.time(launches))


def make_handler() -> Handler:
    """Return the handler of the child process."""
    return Session().handle
