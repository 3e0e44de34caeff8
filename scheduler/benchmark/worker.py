"""Parent side of a worker process that checks and times kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.child_process import ChildProcess
from scheduler.benchmark.sandbox_paths import kernel_memory_limit
from scheduler.errors import Stage

_CASE_FILES = ("case.json", "arrays.npz")


class BenchmarkWorker(ChildProcess):
    """One worker process on one device; it receives cases and libraries."""

    stages: ClassVar[Mapping[str, Stage]] = {"open": Stage.LOAD, "load": Stage.LOAD}

    def __init__(self, device: str, memory_bytes: int | None = None) -> None:
        self.device = device
        limit = memory_bytes or kernel_memory_limit()
        super().__init__("scheduler.benchmark.child", [device, str(limit)])

    def open(self, case: Path, copies: int = 1, timeout_s: float = 120.0) -> None:
        """Open the device and the case in the folder ``case``."""
        with self.stage_files([case / name for name in _CASE_FILES]) as folder:
            self.request(timeout_s, op="open", device=self.device, case=str(folder), copies=copies)

    def load(self, candidate: BuiltCandidate, timeout_s: float) -> dict[str, Any]:
        """Load a candidate's library; the answer holds its ``workspace_bytes``."""
        library = Path(candidate.library)
        with self.stage_files([library]) as folder:
            handed = replace(candidate, library=str(folder / library.name))
            return self.request(timeout_s, op="load", candidate=handed.to_json())
