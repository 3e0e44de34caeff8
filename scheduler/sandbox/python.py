"""Our own child processes: started with what they need of the environment alone, and fenced by
themselves once everything that they use is imported."""

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
# What devices' runtimes, the interpreter and the loader are told; never keys, addresses, folders.
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
# A thread that is there before the fence is outside of it.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start_python(
    module: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """``python -m module`` in a folder that is its home too, in a process group of its own. The
    module calls ``enter_python`` before it touches what nobody has checked."""
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
    """Put this process behind the fence, with the interpreter's files to read, and have it die
    with its parent. Raises ``RuntimeError`` where it has more threads than one."""
    threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1  # noqa: PTH208
    if threads != 1:
        raise RuntimeError(f"{threads} threads are there before the fence")
    _die_with_parent()
    _prefer_oom_kill()
    enter(replace(fence, read=(*fence.read, *_interpreter(), *SYSTEM_LIBRARIES, *SYSTEM_FILES)))


def _is_env_allowed(name: str) -> bool:
    return name.startswith(_ENV_PREFIXES) or name in _ENV_NAMES


def _interpreter() -> tuple[Path, ...]:
    """Where modules are found: the standard library, installed packages, this package; not the
    folder that a checkout lies in, which holds what others wrote."""
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    folders += [Path(entry) for entry in sys.path if entry]
    here = (_PACKAGE_FOLDER.parent, Path.cwd())
    return (
        _PACKAGE_FOLDER,
        *(folder for folder in folders if folder.resolve() not in here or _installed()),
    )


def _installed() -> bool:
    """Whether this package lies among installed ones."""
    return _PACKAGE_FOLDER.parent.name in ("site-packages", "dist-packages")


def _die_with_parent() -> None:
    """Have the kernel end this process when its parent dies: a hung kernel outlives nobody."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _prefer_oom_kill() -> None:
    """Where memory runs out, this process is the one to go."""
    with suppress(OSError):  # then the system chooses by size
        Path("/proc/self/oom_score_adj").write_text("1000")
