"""Reads an untrusted code object in a sandboxed child process.

LLVM and pyelftools parse untrusted input: the process can read the file and write nothing, and has
no network and limited time and memory (``scheduler/sandbox``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler
from scheduler.isa.rocm.objects.model import CodeObject, ReadLimits
from scheduler.sandbox.process import Cancellation
from scheduler.sandbox.rpc import ChildProgram, call_child

_CHILD = ChildProgram(
    *("scheduler.isa.rocm.objects.child:make_handler", "the reader", "be read", "a code object"),
    bug="not a readable code object ({kind})",  # pyelftools raises anything for a damaged file
    quiet=True,
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
    request = {
        "file": str(file.absolute()),
        "processor": processor,
        "kernels": list(kernels),
        "limits": asdict(limits),
    }
    answer = call_child(
        *(_CHILD, request),
        name=file.name,
        seconds=limits.seconds,
        memory_bytes=limits.memory_bytes,
        files=(file.absolute(),),
        cancellation=cancellation,
    )
    if answer["target"] != processor:
        raise UserError(f"{file.name}: built for {answer['target']}, not for {processor}")
    return CodeObject(
        answer["target"], answer["listing"], tuple(answer["kernels"]), answer["left_out"]
    )
