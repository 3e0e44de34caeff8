"""How a compiler's process ended: by itself, or by what happened to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.sandbox import Sandbox
from scheduler.sandbox.process import Limits, run

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
