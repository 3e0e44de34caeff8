"""Read and try out an untrusted model's file in sandboxed child processes.

A child may read the file and write nothing, has no network, and has limits on time and memory
(``scheduler/sandbox``); it answers with one line of JSON. A file that exceeds the limits or crashes
the child is rejected with a one-line error.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import ChildProgram, call_child

_EXTRACTED = "model.pt2"  # the file that a child writes to its folder
_CHILD = ChildProgram("scheduler.untrusted_child", "the reader", "be read", "a model")


@dataclass(frozen=True)
class Limits:
    """Time and memory that a child process may use for a file."""

    seconds: float = 60.0
    memory_bytes: int = 4 << 30


def read_graph(file: Path, limits: Limits = Limits()) -> Mapping[str, Any]:
    """Return the graph in a file as ``graph_to_json`` does.

    If the graph writes inputs, ``writers`` maps each of them to the nodes that write it.

    Raises ``UserError`` naming the malformed part or the exceeded limit, and ``MachineError`` if
    the process was killed from outside.
    """
    content: Mapping[str, Any] = _ask("read", file, (), limits, None)
    return content


def extract_model(file: Path, model_name: str, out: Path, limits: Limits = Limits()) -> None:
    """Write one of the models in a file to the file ``out``.

    Raises as ``read_graph``, and ``UserError`` listing the models if none has that name.
    """
    _ask("extract", file, (model_name, _EXTRACTED), limits, None, out)


def try_out(
    file: Path, targets: Sequence[str], limits: Limits, cancellation: Cancellation | None = None
) -> None:
    """Read, lower and schedule the graph in a file, and render its default kernels.

    The targets share sources. This is a dry run of the preparation; its results are discarded.

    Raises as ``read_graph``, and ``Cancelled``.
    """
    _ask("try", file, targets, limits, cancellation)


def compare_with_torch(
    file: Path,
    bindings: Mapping[str, int],
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
    *,
    seed: int = 0,
) -> list[Mapping[str, Any]]:
    """Compare the reference's outputs with torch's (``benchmark/torch_oracle.py``).

    Returns the findings as dictionaries. Raises as ``try_out``, and ``UserError`` if torch is not
    installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise UserError("torch is not installed: run `pip install torch`, or skip the comparison")
    more = (str(seed), *(f"{name}={size}" for name, size in bindings.items()))
    findings: list[Mapping[str, Any]] = _ask("torch", file, more, limits, cancellation)
    return findings


def _ask(
    what: str,
    file: Path,
    more: Sequence[str],
    limits: Limits,
    cancellation: Cancellation | None,
    out: Path | None = None,
) -> Any:
    """Return the child's answer, and move the file that it wrote to ``out``."""
    given = (what, str(limits.memory_bytes), str(limits.seconds), str(file.absolute()))
    with tempfile.TemporaryDirectory(prefix="kiln-read-") as folder:
        answer = call_child(
            *(_CHILD, (*given, *more)),
            name=file.name,
            folder=Path(folder),
            seconds=limits.seconds,
            cancellation=cancellation,
        )
        if out is not None:
            shutil.move(Path(folder) / _EXTRACTED, out)
        return answer
