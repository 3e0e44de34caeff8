"""One user at a time of a device, across processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scheduler.runtime.lock import DeviceBusy, lock_device

HOLDER = """
    import sys
    from pathlib import Path
    from scheduler.runtime.lock import lock_device
    with lock_device("rocm:0", Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
"""


def _holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_device_in_use_is_rejected_and_its_holder_named(tmp_path: Path) -> None:
    with _holder(tmp_path) as process:
        with (
            pytest.raises(DeviceBusy, match=rf"rocm:0 is in use by process {process.pid}$"),
            lock_device("rocm:0", tmp_path, wait=False),
        ):
            pytest.fail("two hold it")
        with lock_device("rocm:1", tmp_path, wait=False):
            pass  # another device is free
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    with lock_device("rocm:0", tmp_path, wait=False):
        assert f"{os.getpid()}\n" in {path.read_text() for path in tmp_path.iterdir()}


def test_a_killed_holder_leaves_nothing_locked(tmp_path: Path) -> None:
    with _holder(tmp_path) as process:
        process.kill()
        process.wait()
    with lock_device("rocm:0", tmp_path, wait=False):
        pass


def test_the_lock_is_waited_for(tmp_path: Path) -> None:
    with _holder(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.close()  # it lets go soon, or has done so already
        with lock_device("rocm:0", tmp_path):
            pass


def test_an_exception_inside_lets_go(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), lock_device("cpu", tmp_path):
        raise RuntimeError
    with lock_device("cpu", tmp_path, wait=False):
        pass


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with lock_device("../../x", tmp_path / "locks", wait=False):
        assert [path.parent for path in tmp_path.rglob("*.lock")] == [tmp_path / "locks"]
