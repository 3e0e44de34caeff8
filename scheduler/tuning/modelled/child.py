"""The worker process that models kernels: reads one JSON object per line, answers each with one.

It is a separate process because modelling some kernels takes long and may be ended at any moment.
``workers.py`` is its other end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from scheduler.benchmark.sandbox_paths import INPUT_FOLDER
from scheduler.errors import UserError
from scheduler.sandbox import Limits, Sandbox
from scheduler.sandbox.python import enter_python
from scheduler.targets.registry import load_part
from scheduler.tuning.modelled.job import ModelJob
from scheduler.tuning.modelled.model import Model, pack_answer

_LOG_BYTES = 64 << 20


def serve(requests: TextIO, answers: TextIO, model: Model) -> None:
    """Answer requests until the input ends. An exception of the model ends the process; its message
    is in the log."""
    for line in requests:
        answers.write(json.dumps({"ok": _answer(json.loads(line), model)}) + "\n")
        answers.flush()


def _answer(request: dict[str, Any], model: Model) -> dict[str, Any]:
    listing = Path(request["listing"]).read_text(errors="replace")
    try:
        return pack_answer(model(ModelJob.from_json(request["job"]), listing))
    except UserError as error:
        return {"refused": str(error)}


def main(folder: Path, model_name: str, memory_bytes: int) -> None:
    """Entry point of the process: standard output carries only answers."""
    model: Model = load_part(model_name)
    fence = Sandbox(
        read=(folder / INPUT_FOLDER,),
        limits=Limits(memory_bytes=memory_bytes, file_bytes=_LOG_BYTES),
    )
    enter_python(fence)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, answers, model)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
