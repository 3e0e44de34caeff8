"""The child process that reads or tries out one file; ``untrusted.py`` is the parent.

python -m scheduler.untrusted_child read MEMORY_BYTES SECONDS FILE
python -m scheduler.untrusted_child try MEMORY_BYTES SECONDS FILE [TARGET ...]
python -m scheduler.untrusted_child extract MEMORY_BYTES SECONDS FILE MODEL_NAME OUT
python -m scheduler.untrusted_child torch MEMORY_BYTES SECONDS FILE SEED [SYMBOL=SIZE ...]
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler import pipeline, targets
from scheduler.bundle.writer import wrapper_of
from scheduler.errors import UserError
from scheduler.frontends.extract import extract_model
from scheduler.frontends.mutations import writers
from scheduler.ir.serialize import graph_to_json
from scheduler.sandbox import Limits, Sandbox
from scheduler.sandbox.model import MIB
from scheduler.sandbox.python import enter_python


def main(what: str, memory_bytes: int, seconds: float, file: Path, more: Sequence[str]) -> None:
    """Entry point of the process: always write one answer to standard output."""
    file_bytes = MIB + (file.stat().st_size if what == "extract" else 0)
    cpu_seconds = math.ceil(seconds) + 1
    limits = Limits(memory_bytes=memory_bytes, file_bytes=file_bytes, cpu_seconds=cpu_seconds)
    # Importing torch requires a writable folder.
    own = (Path.cwd(),) if what in ("torch", "extract") else ()
    enter_python(Sandbox(read=(file,), write=own, limits=limits))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        answer: dict[str, Any] = {"ok": _COMMANDS[what](file, *more)}
    except UserError as error:
        answer = {"error": str(error)}
    except MemoryError:
        gib = memory_bytes / (1 << 30)
        answer = {"error": f"{file.name}: exceeds the memory limit of {gib:g} GiB for a model"}
    except RecursionError:
        answer = {"error": f"{file.name}: nested too deeply"}
    except Exception as error:  # noqa: BLE001 -- a fault of ours, which takes nothing else along
        traceback.print_exc()
        kind = type(error).__name__
        answer = {"error": f"{file.name}: internal error ({kind}): please report it"}
    json.dump(answer, answers)
    answers.close()


def _read(file: Path) -> dict[str, Any]:
    graph = pipeline.load(file)
    written = writers(graph)
    return {**graph_to_json(graph), **({"writers": written} if written else {})}


def _extract(file: Path, model_name: str, out: str) -> dict[str, Any]:
    """Write the model to the working folder of the process."""
    extract_model(file, model_name, Path(out))
    return {}


def _dry_run(file: Path, *names: str) -> dict[str, Any]:
    """Run the whole preparation: the schedule, and the default kernels' sources."""
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(file)))
    generated = pipeline.generate(schedule, [targets.find(name) for name in names])
    wrapper_of(generated.manifest())
    return {}


def _compare_torch(file: Path, seed: str, *sizes: str) -> list[dict[str, Any]]:
    """Compare outputs and written inputs with torch's, at the given sizes."""
    from scheduler.benchmark.torch_oracle import compare_with_torch  # noqa: PLC0415 -- seconds

    bindings = {name: int(size) for name, _, size in (one.partition("=") for one in sizes)}
    return [asdict(finding) for finding in compare_with_torch(file, bindings, int(seed))]


_COMMANDS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "extract": _extract,
    "try": _dry_run,
    "torch": _compare_torch,
}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
