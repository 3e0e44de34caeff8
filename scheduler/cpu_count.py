"""How many processors this process may use: in a container or a pinned job, not all there are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESS_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_cpus(of_process: Path = _PROCESS_CGROUP, cgroups: Path = _CGROUPS) -> int:
    """Those that it may run on, or as many as its control groups (version 2, as containers set
    them) give it the time of, rounded up, where these are fewer. At least one."""
    allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *map(math.ceil, _quotas(of_process, cgroups))]))


def _quotas(of_process: Path, cgroups: Path) -> Iterator[float]:
    """Processors' worth of time, of its group and of each around that one; nothing of those
    without a limit, and where there are no such groups."""
    for folder in _groups(of_process, cgroups):
        with suppress(OSError, ValueError):  # "max 100000": no limit
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)


def _groups(of_process: Path, cgroups: Path) -> Iterator[Path]:
    with suppress(OSError):
        for line in of_process.read_text().splitlines():
            if line.startswith("0::/"):
                own = Path(line.removeprefix("0::/"))
                yield from (cgroups / group for group in (own, *own.parents))
