"""A cache of modelled results on disk, keyed by code object, call, board and the model itself.

Each result is a file, written atomically, in one of 256 folders of limited size: the least recently
used file is removed first. Any number of processes share the cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import scheduler
from scheduler.build.cache import digest
from scheduler.cycles.report import VERSION
from scheduler.files import disk_errors, write_atomic
from scheduler.tuning.modelled.job import ModelJob

# The code that determines a kernel's time: a change to it invalidates cached results.
_MODEL_FOLDERS = ("build/rocm", "cycles", "isa", "targets")
_MAX_FILES = 256
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class ModelCache:
    """A folder of results, next to the builds of the code cache."""

    root: Path
    max_files: int = _MAX_FILES

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return the result of that key; None if there is no complete one."""
        path = self._path(key)
        try:
            answer = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        with suppress(OSError):  # the time of use: a read-only disk cannot record it
            os.utime(path)
        return answer if isinstance(answer, dict) else None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store a result; a full folder drops its oldest. A file too large to be a result is not
        stored. Raises ``MachineError`` if the disk is full."""
        data = json.dumps(answer, sort_keys=True).encode()
        if len(data) > _MAX_BYTES:
            return
        path = self._path(key)
        with disk_errors("the cache of modelled times", self.root):
            write_atomic(path, data)
        with suppress(OSError):  # another process may remove the same file
            files = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in files[: -self.max_files]:
                file.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.root / "modelled" / key[:2] / f"{key}.json"


def key_of(job: ModelJob, code_digest: str) -> str:
    """Return the key of a result: the code object, every argument of the call with its sizes, the
    board and the model, but neither the kernel's name nor the names of its buffers."""
    data = job.to_json()
    request = data.pop("request")
    buffers = {
        arg["buffer"]: f"b{index}" for index, arg in enumerate(request["args"]) if "buffer" in arg
    }
    args = [
        arg | {"buffer": buffers[arg["buffer"]]} if "buffer" in arg else arg
        for arg in request["args"]
    ]
    limits = {buffers.get(name, name): limit for name, limit in data.pop("index_limits").items()}
    call = {**data, "args": args, "index_limits": limits, "target": request["target"]}
    return digest(code_digest, json.dumps(call, sort_keys=True), model_digest())


@cache
def model_digest() -> str:
    """Return the hash of the model's version and its source files, for this process."""
    package = Path(scheduler.__file__).parent
    files = sorted(path for name in _MODEL_FOLDERS for path in (package / name).rglob("*.py"))
    parts = [part for file in files for part in (str(file.relative_to(package)), file.read_bytes())]
    return digest(str(VERSION), *parts)
