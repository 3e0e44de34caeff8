"""The child process that runs one of our programs on untrusted input; ``rpc.py`` is the parent.

python -m scheduler.sandbox.child PROGRAM SANDBOX [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import json
import os
import pkgutil
import signal
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from scheduler.errors import UserError
from scheduler.sandbox.launch import enter
from scheduler.sandbox.model import SYSTEM_FILES, SYSTEM_LIBRARIES, Sandbox
from scheduler.sandbox.rpc import PACKAGE_FOLDER, Answer, parse_sandbox

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(program: str, sandbox: str, *arguments: str) -> int:
    """Answer requests until the input ends, then return 0, or until an exception that is not a
    ``UserError``, then return 1. Standard output carries only answers; what the program or a
    library prints goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        handler = pkgutil.resolve_name(program)(*arguments)
        _enter_sandbox(parse_sandbox(sandbox))
        for line in sys.stdin:
            try:
                value = handler(json.loads(line))
            except UserError as error:
                _send(answers, {"error": "UserError", "message": str(error)})
                continue
            answer = value if isinstance(value, Answer) else Answer(value, ())
            _send(answers, {"ok": answer.value}, answer.payload)
    except Exception as error:  # noqa: BLE001 -- the parent decides what it means
        if not isinstance(error, UserError | MemoryError | RecursionError):
            traceback.print_exc()
        kind = "UserError" if isinstance(error, UserError) else type(error).__name__
        _send(answers, {"error": kind, "message": str(error)})
        return 1
    return 0


def _send(answers: BinaryIO, message: dict[str, Any], payload: Sequence[memoryview] = ()) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    for part in payload:
        answers.write(part)
    answers.flush()


def _enter_sandbox(sandbox: Sandbox) -> None:
    """Put this process into the sandbox, with read access to the interpreter's files. The kernel
    ends it when its parent dies, and first when memory runs out. Raises ``RuntimeError`` if it has
    more than one thread."""
    linux = sys.platform == "linux"
    threads = len(os.listdir("/proc/self/task")) if linux else 1  # noqa: PTH208
    if threads != 1:
        raise RuntimeError(f"the process has {threads} threads before it enters the sandbox")
    if linux:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    with suppress(OSError):  # then the system chooses by size
        Path("/proc/self/oom_score_adj").write_text("1000")
    readable = (*sandbox.read, *_interpreter(), *SYSTEM_LIBRARIES, *SYSTEM_FILES)
    enter(replace(sandbox, read=readable))


def _interpreter() -> tuple[Path, ...]:
    """Return the folders that modules are found in: the standard library, installed packages and
    this package, but not the folder that contains a checkout, which may hold other people's
    files."""
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    folders += [Path(entry) for entry in sys.path if entry]
    root = PACKAGE_FOLDER.parent
    if root.name not in ("site-packages", "dist-packages"):  # a checkout
        folders = [folder for folder in folders if folder.resolve() not in (root, Path.cwd())]
    return (PACKAGE_FOLDER, *folders)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
