"""The number of processors that this process may use; containers and CPU affinity limit it."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

_PROCESS_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_cpus(process_cgroup: Path = _PROCESS_CGROUP, cgroups: Path = _CGROUPS) -> int:
    """Return the smaller of the CPU affinity count and the CPU quota, rounded up; at least one.

    The quota is the lowest of the process's control group (version 2, as containers set it) and of
    each parent group; groups without a limit are skipped.
    """
    counts = [len(os.sched_getaffinity(0))]
    lines: list[str] = []
    with suppress(OSError):
        lines = process_cgroup.read_text().splitlines()
    for line in lines:
        if line.startswith("0::/"):
            group_path = Path(line.removeprefix("0::/"))
            for group in (group_path, *group_path.parents):
                with suppress(OSError, ValueError):  # "max 100000": no limit
                    quota, period = (cgroups / group / "cpu.max").read_text().split()
                    counts.append(math.ceil(int(quota) / int(period)))
    return max(1, min(counts))
