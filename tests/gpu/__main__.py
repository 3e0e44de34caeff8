"""All tests that need an NVIDIA GPU, with a log that says where and when it was.

    python -m tests.gpu LOG [--workers N] [--commit TEXT] [--models N] [--strata]
                            [pytest's own options …]

With ``--models`` so many random models follow (tests/benchmarks/fuzz.py), with ``--strata`` every
candidate of every stratum (tests/benchmarks/strata.py), on all cores.

Needs the engine's packages, pytest, cuda-bindings, and best ptxas and nvdisasm (kiln[nvidia]); no
Django, no database, no hip-python. Exit status: 0 where all went well, 3 where there is no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from scheduler.build.cuda.toolchains import cuda_compilers
from scheduler.build.model import AbsentToolchain
from scheduler.build.toolchains import Search
from scheduler.runtime import cuda
from scheduler.runtime.device import DeviceInfo

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NO_GPU = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("log", type=Path, metavar="LOG", help="the file to write")
    parser.add_argument(
        "--workers", type=int, default=min(8, os.cpu_count() or 1), help="test processes at a time"
    )
    parser.add_argument("--commit", default="", help="what is tested, where there is no git")
    parser.add_argument("--models", type=int, default=0, metavar="N", help="random models after it")
    parser.add_argument("--strata", action="store_true", help="every candidate after it")
    options, rest = parser.parse_known_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    found = cuda.DEVICES.probe()
    gpus = [one for one in found if isinstance(one, DeviceInfo)]
    with options.log.open("w") as log:
        for line in _head(options.commit):
            _say(log, line)
        for one in found:
            _say(log, f"device:   {_device(one) if isinstance(one, DeviceInfo) else one.reason}")
        if not gpus:
            _say(log, "result:   nothing was tested: no NVIDIA GPU")
            return NO_GPU
        statuses = [_run(log, "pytest", command_line(options.workers, rest))]
        for name, arguments in _following(gpus[0], options):
            command = [sys.executable, "-m", f"tests.benchmarks.{name}", *arguments]
            statuses.append(_run(log, name, command))
    return max(statuses)


def _following(gpu: DeviceInfo, options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """What is asked for beyond the tests."""
    where = ["--device", gpu.id, "--workers", str(os.cpu_count() or 1)]
    if options.models:
        yield "fuzz", [*where, "--models", str(options.models)]
    if options.strata:
        yield "strata", where


def _head(commit: str) -> Iterator[str]:
    """What stands over the tests: when, what, with which programs."""
    yield f"date:     {datetime.now(UTC).isoformat(timespec='seconds')}"
    yield f"commit:   {commit or _commit()}"
    python = f"Python {platform.python_version()}"
    yield f"host:     {platform.platform()}, {os.cpu_count()} cores, {python}"
    packages = ("numpy", "sympy", "cuda.bindings", "pytest")
    yield f"packages: {', '.join(f'{name} {_version(name)}' for name in packages)}"
    for one in cuda_compilers(Search(path=os.environ.get("PATH", ""))):
        said = one.reason if isinstance(one, AbsentToolchain) else one.version
        yield f"compiler: {one.name}: {said}"


def _device(one: DeviceInfo) -> str:
    gib = one.memory_bytes / 2**30
    architecture = one.attributes["architecture"]
    return (
        f"{one.id}: {one.name}, {architecture} as {one.target}, {gib:.0f} GiB, {one.driver};"
        f" readings: {one.attributes['readings']}"
    )


def command_line(workers: int, rest: list[str]) -> list[str]:
    """pytest with settings of its own: whoever's machine it is, its plugins stay out, but for the
    one that runs tests beside each other."""
    command = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini")]
    command += ["--rootdir", str(ROOT), "--confcutdir", str(HERE), "--durations=10"]
    command += ["--tb=short", "-rfEsp"]
    if workers > 1 and importlib.util.find_spec("xdist"):
        command += ["-p", "xdist.plugin", "-n", str(workers)]
    return [*command, *rest, *(str(file) for file in sorted(HERE.glob("test_cu*.py")))]


def _run(log: TextIO, name: str, command: list[str]) -> int:
    """Run a program; each line goes to the log as it comes, and how it ended."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        _say(log, line.rstrip("\n"))
    status = process.wait()
    _say(log, f"result:   {name} ended with {status} after {time.monotonic() - started:.0f} s")
    return status


def _commit() -> str:
    """The checkout's commit, and whether files differ from it."""
    try:
        asked = [
            subprocess.run(
                ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip()
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return "not known: no git here (--commit says it)"
    return asked[0] + (" with changes" if asked[1] else "")


def _version(module: str) -> str:
    try:
        return str(__import__(module, fromlist=["__version__"]).__version__)
    except ImportError:
        return "not installed"


def _say(log: TextIO, line: str) -> None:
    for to in (sys.stdout, log):
        to.write(f"{line}\n")
        to.flush()


class _Plain(argparse.RawDescriptionHelpFormatter):
    """The docstring as it is."""


if __name__ == "__main__":
    sys.exit(main())
