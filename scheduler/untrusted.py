"""Read, or prepare as a dry run, an untrusted model's file in sandboxed child processes.

A child may read the file and write nothing, has no network, and has limits on time and memory
(``scheduler/sandbox``). A file that exceeds the limits or crashes the child is rejected with a
one-line error.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scheduler.errors import UserError
from scheduler.sandbox.model import MIB
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import OUTPUT, ChildProgram, call_child

_CHILD = ChildProgram(
    "scheduler.untrusted_child:make_handler", "the reader", "be read", "a model", names_memory=True
)


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
    content: Mapping[str, Any] = _call("read", file, limits)
    return content


def extract_model(file: Path, model_name: str, out: Path, limits: Limits = Limits()) -> None:
    """Write one of the models in a file to the file ``out``.

    Raises as ``read_graph``, and ``UserError`` listing the models if none has that name.
    """
    file_bytes = MIB + file.stat().st_size
    arguments = {"model_name": model_name, "out": OUTPUT}
    _call("extract", file, limits, arguments, output=out, file_bytes=file_bytes)


def dry_run(
    file: Path,
    targets: Sequence[str],
    limits: Limits,
    cancellation: Cancellation | None = None,
    name: str = "",
) -> None:
    """Read, lower and schedule the graph in a file, and render its default kernels.

    The targets share sources. This is a dry run of the preparation; its results are discarded.
    Errors name the file's ``name``, if given.

    Raises as ``read_graph``, and ``Cancelled``.
    """
    _call("try", file, limits, {"names": list(targets)}, name, cancellation=cancellation)


def compare_with_torch(
    file: Path,
    bindings: Mapping[str, int],
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
    name: str = "",
    *,
    seed: int = 0,
) -> list[Mapping[str, Any]]:
    """Compare the reference's outputs with torch's (``benchmark/torch_oracle.py``).

    Returns the findings as dictionaries. Names the file and raises as ``dry_run``, and
    ``UserError`` if torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise UserError("torch is not installed: run `pip install torch`, or skip the comparison")
    findings: list[Mapping[str, Any]] = _call(
        *("torch", file, limits, {"seed": seed, "bindings": dict(bindings)}, name),
        writable=True,  # importing torch requires a writable folder
        cancellation=cancellation,
    )
    return findings


def _call(
    command: str,
    file: Path,
    limits: Limits,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    name: str = "",
    **options: Any,
) -> Any:
    return call_child(
        *(_CHILD, {"command": command, "file": str(file.absolute()), **arguments}),
        name=name or file.name,
        seconds=limits.seconds,
        memory_bytes=limits.memory_bytes,
        files=(file.absolute(),),
        **options,
    )
