"""What commits accept: after a message with a line ``Accepts: NAME``, and why, a recorded figure
may be worse than its margin allows until the figures are recorded anew."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_LINE = re.compile(r"^Accepts: (.+?) *$", re.MULTILINE)


def accepted(record: Path) -> set[str]:
    """Names in the messages since the file of the figures was last written; none without git."""
    try:
        written = _git(record.parent, "log", "-1", "--format=%H", "--", record.name)
        return set(_LINE.findall(_git(record.parent, "log", "--format=%B", f"{written}..HEAD")))
    except (OSError, subprocess.CalledProcessError):
        return set()


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()
