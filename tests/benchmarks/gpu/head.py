"""What stands over the table: where, when and with what it was measured."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from datetime import UTC, datetime

from scheduler.build.model import AbsentToolchain
from scheduler.build.toolchains import Search, find_target_toolchains
from scheduler.results.origin import kiln_commit
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.nvml import Monitor
from scheduler.targets import find
from tests.benchmarks.gpu.compilers import CCompiler


def head_of(
    info: DeviceInfo, monitor: Monitor, options: argparse.Namespace, found: CCompiler | None
) -> dict[str, str]:
    """A line for each fact, by its name."""
    return {
        **place_of(info, monitor, options.commit, found),
        "tuning": _tuning(options),
        "samples": f"{options.rounds} rounds, 95% intervals of the median in the JSON",
    }


def place_of(
    info: DeviceInfo, monitor: Monitor, commit: str, found: CCompiler | None = None
) -> dict[str, str]:
    """Those that hang on the machine and on what is measured."""
    compilers = [
        f"{one.name} ({one.version})"
        for one in find_target_toolchains(
            find(info.target), Search(path=os.environ.get("PATH", ""))
        )
        if not isinstance(one, AbsentToolchain)
    ]
    torchs = ", ".join(f"{name} {_version(name)}" for name in ("torch", "triton", "numpy"))
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or kiln_commit() or "not known: no git here (--commit says it)",
        "device": f"{info.name}, {info.compute_units} multiprocessors, "
        f"{info.memory_bytes / 2**30:.0f} GiB, {info.driver}",
        "clocks": _clocks(info) + (f"; not read: {monitor.absence}" if monitor.absence else ""),
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        "packages": torchs,
        "compilers": "; ".join([*compilers, *([f"Triton's: {found.title}"] if found else [])]),
    }


def _clocks(info: DeviceInfo) -> str:
    """What it can reach; what it had is under the table."""
    sm, memory = (int(info.attributes[key]) // 1000 for key in ("clock_khz", "memory_clock_khz"))
    return f"SM at most {sm} MHz, memory at most {memory} MHz"


def _tuning(options: argparse.Namespace) -> str:
    parts = []
    if options.tune:
        of = f" of {', '.join(options.tune_only)}" if options.tune_only else ""
        parts.append(f"{options.tune:g} s for each kernel{of}")
    parts += [
        f"{run.graph.name} by what was recorded on {run.finished_at[:10]} ({run.reason})"
        for file in options.results
        for run in file.runs
    ]
    return "; ".join(parts) or "none"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
