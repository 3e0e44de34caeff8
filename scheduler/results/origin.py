"""The version of this Kiln and the kind of its host; nothing that identifies a machine or a
person."""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from scheduler.results.model import Origin
from scheduler.version import kiln_version

_CHECKOUT = Path(__file__).parents[2]
_TIMEOUT_S = 10


def origin_now(commit: str = "") -> Origin:
    """Return the origin of new measurements. ``commit`` is for a copy without its history."""
    return Origin(
        version=kiln_version(),
        commit=commit or kiln_commit(),
        date=datetime.now(UTC).isoformat(),
        host=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    )


def kiln_commit() -> str:
    """Return the checkout's commit, with ``-dirty`` if files differ from it; "" without a
    history."""
    if not (_CHECKOUT / ".git").exists():
        return ""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            command, cwd=_CHECKOUT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
        return answer.stdout.strip()[:64]
    return ""
