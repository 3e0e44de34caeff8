"""The process that models one launch of a kernel; ``untrusted.py`` is its other end.

python -m scheduler.cycles.untrusted_child REQUEST LISTING LAUNCH
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from scheduler.cycles.kernel_file import KernelFile, model_file
from scheduler.cycles.launches.parser import read_launch, validator
from scheduler.cycles.report_json import to_json
from scheduler.errors import UserError
from scheduler.sandbox import Limits as FenceLimits
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import MIB
from scheduler.sandbox.python import enter_python
from scheduler.targets import boards, find


def main(request: dict[str, Any], listing: Path, launch: Path) -> None:
    """Entry point of the process: writes one answer to standard output, whatever the kernel
    does."""
    validator()  # imported before the sandbox is entered
    memory = request["limits"]["memory_bytes"]
    seconds = math.ceil(request["limits"]["seconds"]) + 1
    limits = FenceLimits(memory_bytes=memory, file_bytes=MIB, cpu_seconds=seconds)
    enter_python(Sandbox(read=(listing, launch), limits=limits))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    name = request["name"]
    try:
        answer: dict[str, Any] = {"ok": _model(request, listing, launch)}
    except UserError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"{name}: exceeds the memory limit of {memory / (1 << 30):g} GiB"}
    except RecursionError:
        answer = {"error": f"{name}: nested too deeply"}
    except Exception as error:  # noqa: BLE001 -- a fault of ours, which takes nothing else along
        traceback.print_exc()
        kind = type(error).__name__
        answer = {"error": f"{name}: internal error ({kind}): please report it"}
    json.dump(answer, answers)
    answers.close()


def _model(request: dict[str, Any], listing: Path, launch: Path) -> dict[str, Any]:
    target = find(request["target"])
    (board,) = [each for each in boards(target.name) if each.name == request["board"]]
    kernels = KernelFile(request["name"], listing.read_text("utf-8"), tuple(request["kernels"]))
    text = read_launch(launch.read_text("utf-8"))
    return to_json(model_file(kernels, target, board, text))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
