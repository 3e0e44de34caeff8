"""All tests that need an NVIDIA GPU, with a log that says where and when it was.

    python -m tests.gpu LOG [--workers N] [--commit TEXT] [pytest's own options …]

Needs the engine's packages, pytest, cuda-bindings, and best ptxas and nvdisasm (kiln[nvidia]); no
Django, no database, no hip-python. Exit status: pytest's, or 3 where there is no such GPU.
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
        started = time.monotonic()
        status = _tested(log, options.workers, rest)
        _say(log, f"result:   pytest ended with {status} after {time.monotonic() - started:.0f} s")
    return status


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
    command += ["--rootdir", str(ROOT), "--confcutdir", str(HERE), "-v", "--durations=10"]
    command += ["--tb=short"]
    if workers > 1 and importlib.util.find_spec("xdist"):
        command += ["-p", "xdist.plugin", "-n", str(workers)]
    return [*command, *rest, *(str(file) for file in sorted(HERE.glob("test_cuda_*.py")))]


def _tested(log: TextIO, workers: int, rest: list[str]) -> int:
    """Run pytest; each line goes to the log as it comes."""
    process = subprocess.Popen(
        command_line(workers, rest),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        _say(log, line.rstrip("\n"))
    return process.wait()


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
