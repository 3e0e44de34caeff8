"""Our own child processes: started with a minimal environment; each enters the sandbox itself once
everything that it uses is imported."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler.sandbox.launch import enter
from scheduler.sandbox.model import SYSTEM_FILES, SYSTEM_LIBRARIES, Sandbox

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PACKAGE_FOLDER = Path(__file__).resolve().parents[1]  # the package scheduler
# Variables for device runtimes, the interpreter and the loader; never keys, addresses or folders.
_ENV_PREFIXES = (
    "AMD_",
    "CUDA_",
    "GPU_",
    "HIP_",
    "HSA_",
    "LC_",
    "LD_LIBRARY_",
    "NVIDIA_",
    "ROCM_",
    "ROCR_",
)
_ENV_NAMES = frozenset({"LANG", "PATH", "PYTHONHASHSEED", "PYTHONPATH", "TZ"})
# A thread that exists before the sandbox is entered stays outside it.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start_python(
    module: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Run ``python -m module`` in a folder that is also its home, in a process group of its own.
    The module calls ``enter_python`` before it handles untrusted input."""
    paths = (str(_PACKAGE_FOLDER.parent), environ.get("PYTHONPATH", ""))
    environment = {
        **{name: value for name, value in environ.items() if _is_env_allowed(name)},
        **_ONE_THREAD,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, process_group=0, **options)


def enter_python(fence: Sandbox) -> None:
    """Put this process into the sandbox, with read access to the interpreter's files, and have it
    die with its parent. Raises ``RuntimeError`` if it has more than one thread."""
    threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1  # noqa: PTH208
    if threads != 1:
        raise RuntimeError(f"the process has {threads} threads before it enters the sandbox")
    _die_with_parent()
    _prefer_oom_kill()
    enter(replace(fence, read=(*fence.read, *_interpreter(), *SYSTEM_LIBRARIES, *SYSTEM_FILES)))


def _is_env_allowed(name: str) -> bool:
    return name.startswith(_ENV_PREFIXES) or name in _ENV_NAMES


def _interpreter() -> tuple[Path, ...]:
    """Return the folders that modules are found in: the standard library, installed packages and
    this package, but not the folder that contains a checkout, which may hold other people's
    files."""
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    folders += [Path(entry) for entry in sys.path if entry]
    here = (_PACKAGE_FOLDER.parent, Path.cwd())
    return (
        _PACKAGE_FOLDER,
        *(folder for folder in folders if folder.resolve() not in here or _installed()),
    )


def _installed() -> bool:
    """Whether this package is an installed one."""
    return _PACKAGE_FOLDER.parent.name in ("site-packages", "dist-packages")


def _die_with_parent() -> None:
    """Have the kernel end this process when its parent dies, so that a hung kernel does not outlive
    it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _prefer_oom_kill() -> None:
    """Make this process the first to be killed when memory runs out."""
    with suppress(OSError):  # then the system chooses by size
        Path("/proc/self/oom_score_adj").write_text("1000")
