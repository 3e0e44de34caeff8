"""Runs the long tier: ``python -m tests.long [pytest's own options …]``.

``docs/evidence/long.json`` has for each long test the commit and host that it last passed on, and
how long it took. A run of some of them (``-k name``) writes these and leaves the others.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.durations import RECORD

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "docs" / "evidence" / "long.json"


def main(options: list[str]) -> int:
    RECORD.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "--tier", "long", "-n", "auto", *options]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    tests = json.loads(RECORD.read_text())["tests"] if RECORD.exists() else {}
    passed = {name: test for name, test in tests.items() if test["outcome"] == "passed"}
    if passed:
        write(passed)
    return status


def write(passed: dict[str, Any]) -> None:
    """Add what passed to the evidence. A commit is not dirty because of the evidence itself."""
    commit = git("rev-parse", "--short=12", "HEAD")
    if git("status", "--porcelain", "-uno", "--", ".", f":!{EVIDENCE.relative_to(ROOT)}"):
        commit += "-dirty"
    host = f"{platform.machine()}, {platform.system()} {platform.release()}"
    known = json.loads(EVIDENCE.read_text()) if EVIDENCE.exists() else {}
    for name, test in passed.items():
        seconds = round(test["wall_s"], 1)
        known[name] = {"commit": commit, "host": host, "seconds": seconds}
    EVIDENCE.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    EVIDENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
