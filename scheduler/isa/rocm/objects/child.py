"""The process that reads one code object; ``reader.py`` is its other end.

python -m scheduler.isa.rocm.objects.child REQUEST FILE
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler, elf, listing_writer, offload_bundle
from scheduler.isa.rocm.objects.model import ReadLimits
from scheduler.sandbox import Limits as FenceLimits
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import MIB
from scheduler.sandbox.python import enter_python


def main(request: dict[str, Any], file: Path) -> None:
    """Entry point of the process: writes one answer to standard output, whatever the file does."""
    limits = ReadLimits(**request["limits"])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        library = disassembler.load()
        _enter_sandbox(file, limits)
        answer: dict[str, Any] = {"ok": _read(request, file, limits, library)}
    except UserError as error:
        answer = {"error": f"{file.name}: {error}"}
    except MemoryError:
        gib = limits.memory_bytes / (1 << 30)
        answer = {"error": f"{file.name}: exceeds the memory limit of {gib:g} GiB"}
    except RecursionError:
        answer = {"error": f"{file.name}: nested too deeply"}
    except Exception as error:  # noqa: BLE001 -- pyelftools raises whatever a broken file leads to
        traceback.print_exc()
        kind = type(error).__name__
        answer = {"error": f"{file.name}: not a readable code object ({kind})"}
    json.dump(answer, answers)
    answers.close()


def _enter_sandbox(file: Path, limits: ReadLimits) -> None:
    seconds = math.ceil(limits.seconds) + 1
    own = FenceLimits(memory_bytes=limits.memory_bytes, file_bytes=MIB, cpu_seconds=seconds)
    enter_python(Sandbox(read=(file,), limits=own))


def _read(request: dict[str, Any], file: Path, limits: ReadLimits, library: Any) -> dict[str, Any]:
    content = offload_bundle.unbundle(file.read_bytes(), request["processor"])
    found = listing_writer.write_listing(
        elf.read(content, limits), library, limits, request["kernels"]
    )
    return {
        "target": found.target,
        "listing": found.listing,
        "kernels": found.kernels,
        "left_out": found.left_out,
    }


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
