"""A stranger's bundle is native code: it is run after asking alone, and only behind the fence."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from scheduler import reference, sandbox
from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle.reader import open_bundle
from scheduler.commands import trust
from scheduler.commands.main import main
from scheduler.errors import UserError
from tests.support import exported

# In place of each kernel: it looks for a file, and says whether it found one.
STRANGER = """
#include <fcntl.h>
#include <stdlib.h>
extern "C" __attribute__((constructor)) void look() {
  if (open("/etc/passwd", O_RDONLY) >= 0) abort();
}
"""


@pytest.fixture(scope="module")
def bundle(cache: CodeCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model for the emulation, compiled by this user."""
    out = tmp_path_factory.mktemp("ours") / "bundle"
    model = str(exported.write(out.parent / "model.pt2", exported.pointwise()))
    files = ("--cache", str(cache.root), "--out", str(out))
    assert main(["compile", model, "--target", "cpu", *files]) == 0
    return out


def inputs(bundle: Path, folder: Path) -> list[str]:
    """Options of the command run: random inputs at a small size, and where outputs go."""
    graph, rng = open_bundle(bundle).graph, np.random.default_rng(0)
    np.savez(folder / "in.npz", **reference.random_inputs(graph, {"s0": 5, "s1": 7}, rng))
    files = ["--inputs", str(folder / "in.npz"), "--outputs", str(folder / "out.npz")]
    return [*files, "--bind", "s0=5", "--bind", "s1=7"]


@pytest.mark.full
def test_what_this_user_compiled_is_run_without_asking(bundle: Path, tmp_path: Path) -> None:
    assert main(["run", str(bundle), *inputs(bundle, tmp_path)]) == 0
    assert (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("command", ["run", "verify"])
def test_what_nobody_vouches_for_is_not_run(
    command: str,
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(trust, "_CACHE_FOLDER", tmp_path / "another user's")
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    more = inputs(bundle, tmp_path) if command == "run" else []
    assert main([command, str(bundle), *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "native code that was not compiled here" in line
    assert "--trust" in line
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n"])
def test_at_a_terminal_one_is_asked(
    answer: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "_CACHE_FOLDER", tmp_path / "another user's")
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        with (
            nullcontext() if answer == "y\n" else pytest.raises(UserError, match="nothing was run")
        ):
            trust.confirm_trust(open_bundle(bundle), "cpu", trusted=False)
    os.close(ours)


@pytest.mark.full
@pytest.mark.skipif(
    bool(sandbox.sandbox_status().missing), reason="this machine lacks parts of the fence"
)
def test_what_somebody_trusts_is_still_fenced(
    bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], cache: CodeCache
) -> None:
    strange = tmp_path / "strange"
    shutil.copytree(bundle, strange)
    compile_alone(STRANGER, tmp_path / "kernel.so", cache)
    for library in strange.glob("kernels/*/cpu/kernel.so"):
        shutil.copyfile(tmp_path / "kernel.so", library)
    assert main(["run", str(strange), *inputs(bundle, tmp_path), "--trust"]) == 1
    errors = capfd.readouterr().err
    assert "exports no function" in errors  # it was loaded, and what it did then came to nothing
    assert "SIGABRT" not in errors
    assert not (tmp_path / "out.npz").exists()


def compile_alone(text: str, library: Path, cache: CodeCache) -> None:
    """A library without anything of ours."""
    zig = bundled_clang(cache).host
    source = library.with_name("strange.cc")
    source.write_text(text)
    command = [*zig, "-shared", "-fPIC", "-x", "c++", str(source), "-o", str(library)]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache.compiler_cache())}
    subprocess.run(command, check=True, env=environment, capture_output=True)


def test_the_wrapper_says_that_it_executes_native_code(bundle: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import wrapper; print(wrapper.__doc__)"],
        cwd=bundle,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "executes the\nbundle's native code in this process" in done.stdout
