"""The number of processors that this process may use; containers and CPU affinity limit it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESS_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_cpus(of_process: Path = _PROCESS_CGROUP, cgroups: Path = _CGROUPS) -> int:
    """Return the smaller of the CPU affinity count and the CPU quota, rounded up; at least one.

    The quota is the lowest of the process's control groups (version 2, as containers set them).
    """
    allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *map(math.ceil, _quotas(of_process, cgroups))]))


def _quotas(of_process: Path, cgroups: Path) -> Iterator[float]:
    """Yield the CPU quota, in processors, of the process's control group and of each parent group.

    Groups without a limit are skipped; without control groups nothing is yielded.
    """
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
