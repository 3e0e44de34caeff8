"""The process that runs a bundle's whole graph once; ``graph_run.py`` is the parent.

python -m scheduler.benchmark.graph_child FOLDER DEVICE MEMORY_BYTES
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.benchmark.graph_run import BUNDLE, INPUTS, REQUEST, GraphOutputs
from scheduler.benchmark.sandbox_paths import INPUT_FOLDER, kernel_sandbox
from scheduler.benchmark.verification import rebuild_schedule, run_once
from scheduler.bundle.reader import open_bundle
from scheduler.errors import UserError
from scheduler.ir.storage import Array
from scheduler.runtime.device import DeviceError
from scheduler.runtime.devices import open_device
from scheduler.sandbox.python import enter_python


def main(folder: Path, device: str, memory_bytes: int) -> None:
    """Entry point of the process: write one line of JSON, then the bytes of each output."""
    enter_python(kernel_sandbox(folder, device, memory_bytes))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    outputs: Mapping[str, Array] = {}
    answer: dict[str, Any]
    try:
        made = _run(folder / INPUT_FOLDER, device)
        outputs = made.values
        answer = {"missing": dict(made.missing), "bindings": dict(made.bindings)}
    except UserError as error:
        answer = {"mistake": str(error)}
    except DeviceError as error:
        answer = {"status": error.status, "message": error.message}
    except MemoryError as error:
        answer = {"status": "hipErrorOutOfMemory", "message": str(error)}
    answers.write(json.dumps(answer).encode() + b"\n")
    for value in outputs.values():
        answers.write(np.ascontiguousarray(value).data)
    answers.close()


def _run(handed: Path, device: str) -> GraphOutputs:
    request = json.loads((handed / REQUEST).read_text())
    bundle = open_bundle(handed / BUNDLE)
    inputs = {
        name: np.load(handed / INPUTS / f"{number}.npy", mmap_mode="r", allow_pickle=False)
        for number, name in enumerate(request["inputs"])
    }
    return run_once(
        bundle, rebuild_schedule(bundle), open_device(device), request["bindings"], inputs
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
