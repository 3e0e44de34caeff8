"""Models an untrusted kernel in a process of its own.

Its listing and its launch may contain anything: the process can read both and write nothing, has no
network, and limited time and memory (``scheduler/sandbox``); it answers with one line of JSON.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler.cycles.kernel_file import KernelFile
from scheduler.cycles.report import Report
from scheduler.cycles.report_json import from_json
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import ChildProgram, call_child
from scheduler.targets import Board

_CHILD = ChildProgram("scheduler.cycles.untrusted_child", "the model", "be modelled", "a kernel")


@dataclass(frozen=True)
class ProcessLimits:
    """The resources that modelling one launch may use."""

    seconds: float = 300.0
    memory_bytes: int = 4 << 30


def model_untrusted(
    kernels: KernelFile,
    board: Board,
    launch: str,
    limits: ProcessLimits = ProcessLimits(),
    cancellation: Cancellation | None = None,
) -> Report:
    """Model one launch (JSON) of a kernel of the file on a board, as ``model_file`` does.

    Raises ``UserError`` in one line, also if it exceeds the limits; ``MachineError`` if the process
    was ended from outside; ``Cancelled``.
    """
    with tempfile.TemporaryDirectory(prefix="kiln-model-") as place:
        folder = Path(place)
        listing, text = folder / "kernel.s", folder / "launch.json"
        listing.write_text(kernels.listing, "utf-8")
        text.write_text(launch, "utf-8")
        request = {
            "name": kernels.name,
            "kernels": list(kernels.kernels),
            "target": board.target,
            "board": board.name,
            "limits": asdict(limits),
        }
        answer = call_child(
            *(_CHILD, (json.dumps(request), str(listing), str(text))),
            name=kernels.name,
            folder=folder,
            seconds=limits.seconds,
            cancellation=cancellation,
        )
    return from_json(answer)
