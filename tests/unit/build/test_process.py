"""How a compiler's process ended: by itself, or by what happened to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.sandbox import Sandbox
from scheduler.sandbox.process import CompletedProcess, Limits, run

SHELL = Path("/bin/sh")


@pytest.mark.parametrize(
    ("script", "interrupted"),
    [
        # zig, whose compiler or linker was killed
        ("echo 'zig: warning: argument unused'; kill -ABRT $$", True),
        ("kill -KILL $$", True),
        # clang, which failed over its source
        ("echo 'Stack dump:'; kill -ABRT $$", False),
        ("kill -SEGV $$", False),
        ("exit 1", False),
    ],
)
def test_an_end_from_outside_is_told_from_a_crash(
    tmp_path: Path, script: str, interrupted: bool
) -> None:
    libraries = tuple(Path(one) for one in ("/usr", "/lib", "/lib64") if Path(one).exists())
    places = Sandbox(write=(tmp_path,), execute=(SHELL.resolve(), *libraries))
    done = run((str(SHELL), "-c", script), tmp_path, {}, Limits(), None, policy=places)
    assert done.interrupted == interrupted, done


def run_shell(
    script: str, folder: Path, limits: Limits = Limits(), **parts: bool
) -> CompletedProcess:
    libraries = tuple(Path(one) for one in ("/usr", "/lib", "/lib64") if Path(one).exists())
    policy = Sandbox(write=(folder,), execute=(SHELL.resolve(), *libraries), **parts)
    return run((str(SHELL), "-c", script), folder, {"PATH": "/usr/bin:/bin"}, limits, None, policy)


def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 9999 ]; do echo line $i; i=$((i+1)); done"
    done = run_shell(script, tmp_path, Limits(output_bytes=100))
    assert done.ok and len(done.output) == 100
    assert done.output.endswith("line 9998\n")


@pytest.mark.parametrize("command", ["setsid sleep 60", "sleep 60"])
def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path, command: str) -> None:
    """Otherwise it would hold the pipe, and the caller would wait for it."""
    done = run_shell(f"{command} & echo started", tmp_path, one_group=True)
    assert (done.ok, done.output) == (True, "started\n")
