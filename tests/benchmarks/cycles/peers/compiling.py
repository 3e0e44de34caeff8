"""Triton's kernels compiled for AMD's GPUs without one, in a process of their own; kept by
content."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.errors import UserError

_CHILD = Path(__file__).with_name("child.py")
_SECONDS = 1800


@dataclass(frozen=True)
class Compiled:
    """A kernel's listing, or why there is none."""

    listing: str = ""
    lds_bytes: int = 0
    error: str = ""


@dataclass(frozen=True)
class Compiler:
    """Triton as it lies in ``site``; what it made is kept in ``cache``."""

    site: Path
    cache: Path

    @property
    def version(self) -> str:
        """Raises ``UserError`` where the folder has no Triton."""
        found = sorted(self.site.glob("triton-*.dist-info"))
        if not found:
            raise UserError(
                f"{self.site}: no Triton is there; pip install --target {self.site} triton"
            )
        return found[0].name.removeprefix("triton-").removesuffix(".dist-info")

    def compiled(self, requests: Sequence[Mapping[str, Any]]) -> list[Compiled]:
        """In the requests' order. Raises ``UserError`` where Triton does not start."""
        files = [self.cache / f"{self._key(request)}.json" for request in requests]
        missing = {
            file: request
            for file, request in zip(files, requests, strict=True)
            if not file.is_file()
        }
        if missing:
            answers = self._asked(list(missing.values()))
            self.cache.mkdir(parents=True, exist_ok=True)
            for file, answer in zip(missing, answers, strict=True):
                file.write_text(json.dumps(answer))
        return [Compiled(**json.loads(file.read_text())) for file in files]

    def _key(self, request: Mapping[str, Any]) -> str:
        source = Path(request["file"]).read_text()
        text = json.dumps([self.version, source, _CHILD.read_text(), {**request, "file": ""}])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _asked(self, requests: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(_CHILD), str(self.site)],
            input=json.dumps(requests),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise UserError(f"Triton in {self.site} does not work: {done.stderr[-1000:]}")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found
