"""Models an untrusted kernel in a sandboxed child process.

Its listing and its launch may contain anything: the process writes nothing, and has no network and
limited time and memory (``scheduler/sandbox``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.cycles.kernel_file import KernelFile, model_file
from scheduler.cycles.launches.parser import read_launch, validator
from scheduler.cycles.report import Report
from scheduler.cycles.report_json import from_json, to_json
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import ChildProgram, Handler, call_child
from scheduler.targets import Board, boards, find

_CHILD = ChildProgram(
    "scheduler.cycles.untrusted:make_handler", "the model", "be modelled", "a kernel"
)


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
    request = {
        "name": kernels.name,
        "kernels": list(kernels.kernels),
        "target": board.target,
        "board": board.name,
        "listing": kernels.listing,
        "launch": launch,
    }
    answer = call_child(
        *(_CHILD, request),
        name=kernels.name,
        seconds=limits.seconds,
        memory_bytes=limits.memory_bytes,
        cancellation=cancellation,
    )
    return from_json(answer)


def make_handler() -> Handler:
    """Return the handler of the child process."""
    validator()  # imported before the sandbox is entered
    return model_request


def model_request(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request of ``model_untrusted``."""
    target = find(request["target"])
    (board,) = [board for board in boards(target.name) if board.name == request["board"]]
    kernels = KernelFile(request["name"], request["listing"], tuple(request["kernels"]))
    return to_json(model_file(kernels, target, board, read_launch(request["launch"])))
