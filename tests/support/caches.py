"""The code cache of the tests, kept from run to run."""

from __future__ import annotations

from pathlib import Path

from scheduler.build.cache import CodeCache

# Its keys are contents, so nothing in it can be stale; a second run compiles nothing.
KEPT = CodeCache(Path(__file__).resolve().parents[2] / "var" / "tests" / "code-cache")
