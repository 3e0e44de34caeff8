"""Reads an untrusted code object in a process of its own.

LLVM and pyelftools parse untrusted input: the process can read the file and write nothing, has no
network, and limited time and memory (``scheduler/sandbox``); it answers with one line of JSON.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler
from scheduler.isa.rocm.objects.model import CodeObject, ReadLimits
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import ChildProgram, call_child

_CHILD = ChildProgram(
    "scheduler.isa.rocm.objects.child", "the reader", "be read", "a code object", True
)


def read_code_object(
    file: Path,
    processor: str,
    kernels: Sequence[str] = (),
    limits: ReadLimits = ReadLimits(),
    cancellation: Cancellation | None = None,
) -> CodeObject:
    """Return the code object for a processor (``gfx942``) from a file: an ELF file (.hsaco, .co,
    .o), or a bundle with one, as a listing of the named kernels, or of all.

    Raises ``UserError`` in one line if it is none, or for another processor; ``MachineError`` if
    the process was ended from outside; ``Cancelled``.
    """
    disassembler.require()
    if file.stat().st_size > limits.file_bytes:
        raise UserError(f"{file.name}: larger than the limit of {limits.file_bytes >> 20} MiB")
    request = {"processor": processor, "kernels": list(kernels), "limits": asdict(limits)}
    with tempfile.TemporaryDirectory(prefix="kiln-object-") as folder:
        found = call_child(
            *(_CHILD, (json.dumps(request), str(file.absolute()))),
            name=file.name,
            folder=Path(folder),
            seconds=limits.seconds,
            cancellation=cancellation,
        )
    if found["target"] != processor:
        raise UserError(f"{file.name}: built for {found['target']}, not for {processor}")
    return CodeObject(found["target"], found["listing"], tuple(found["kernels"]), found["left_out"])
