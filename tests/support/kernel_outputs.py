"""Call a built kernel once on a device, in this process, and read its outputs.

For trusted kernels and for devices that emulate instructions; other kernels are called in a
separate process (``scheduler/benchmark/worker.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.gate import check_outputs
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.memory import CaseMemory, GuardedBlock
from scheduler.codegen.benchmark_request import TensorArg
from scheduler.ir.storage import Array
from scheduler.runtime.device import Device


@dataclass(frozen=True)
class CandidateOutputs:
    """``storages`` of the case's outputs by buffer; ``damaged``: what else was written."""

    storages: Mapping[str, Array]
    damaged: tuple[str, ...]

    def check(self, case: Case) -> Check:
        """Check the outputs with ``gate.check_outputs``."""
        return check_outputs(case, self.storages, self.damaged)


def run_candidate(device: Device, case: Case, candidate: BuiltCandidate) -> CandidateOutputs:
    """Call the kernel once on the case's inputs. Raises ``DeviceError`` if the device fails."""
    request = candidate.request
    kernel = device.load(Path(candidate.library), request.symbol, request.arg_types)
    memory = CaseMemory(device, case)
    args = [
        memory.pointer(arg.buffer) if isinstance(arg, TensorArg) else arg.value
        for arg in request.args
    ]
    workspace = GuardedBlock(device, kernel.workspace_bytes(args))
    try:
        memory.poison_outputs(candidate.outputs)
        workspace.poison()
        kernel(args, workspace.pointer)
        device.synchronize()
        damaged = memory.damaged_buffers(candidate.outputs)
        if not workspace.is_intact():
            damaged = (*damaged, "workspace")
        storages = {name: memory.read(case.buffers[name]) for name in case.expected}
        return CandidateOutputs(storages, damaged)
    finally:
        workspace.free()
        memory.free()
