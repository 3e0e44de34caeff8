"""``manage.py demo`` as people run it: in a folder of its own, on a free port, then stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from codegen_app.platform import postgres
from tests.app.processes import interpreter

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as that of a checkout is."""
    folder = Path(tempfile.mkdtemp(prefix="kiln-demo-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        postgres.remove(folder)
        shutil.rmtree(folder)


def environment(var: Path) -> dict[str, str]:
    """Of a command of this installation that works in a folder of its own."""
    others = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    packages = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    own = {"KILN_VAR": str(var), "PYTHONPATH": ":".join(packages)}
    return {**others, **own, "KILN_TORCH": "0"}  # seconds of the demo's workers a graph


@contextmanager
def started(
    command: Sequence[str | Path], cwd: Path, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A demo, which is asked to end when the test is over."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


@contextmanager
def demo(var: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """The demo of this checkout."""
    command = [interpreter(), "manage.py", "demo", "--port", str(port)]
    with started(command, ROOT, environment(var)) as process:
        yield process


def first_line(process: subprocess.Popen[str]) -> str:
    """The next line that it prints; fails the test where it ended without one."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        pytest.fail(f"the demo said nothing: {process.communicate(timeout=LIMIT_S)}")
    return line
