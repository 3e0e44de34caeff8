"""The files and devices available to a process that runs untrusted kernels."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.sandbox import Limits, Sandbox
from scheduler.sandbox.model import MIB

# Subfolders of a process's folder: its inputs (read-only) and its writable home.
INPUT_FOLDER, HOME_FOLDER = "handed", "home"
_MAX_LOG_BYTES = 64 * MIB
_MIN_MEMORY_BYTES = 8 << 30
_EMULATION_PREFIXES = ("cpu", "isa:")  # prefixes of the ids of emulated devices
_GPU_FILES = tuple(
    Path(name)
    for name in (
        *("/proc", "/sys", "/opt/rocm", "/opt/amdgpu", "/usr/share/libdrm", "/etc/rocm"),
        *("/usr/local/nvidia", "/usr/local/cuda", "/usr/share/nvidia", "/usr/lib/wsl"),
    )
)
_NVIDIA_PREFIX = "cuda"  # prefix of the ids of NVIDIA's GPUs
_THREAD_NAMES = (Path("/proc/self/task"),)  # NVIDIA's driver writes thread names there
_GPU_DEVICES = ("kfd", "dri", "nvidia*")


def kernel_sandbox(folder: Path, device: str, memory_bytes: int) -> Sandbox:
    """Return the sandbox of a process with this folder and device.

    The emulation needs no writable file and no device; a GPU's runtime writes files to its home
    and accesses the device.
    """
    inputs = (folder / INPUT_FOLDER,)
    if device.startswith(_EMULATION_PREFIXES):
        return Sandbox(
            read=inputs, limits=Limits(memory_bytes=memory_bytes, file_bytes=_MAX_LOG_BYTES)
        )
    variables = ("ROCM_PATH", "HIP_PATH")
    rocm_folders = (Path(os.environ[name]) for name in variables if name in os.environ)
    return Sandbox(
        read=(*inputs, *_GPU_FILES, *rocm_folders),
        write=(folder / HOME_FOLDER, *_THREAD_NAMES),
        packet_sockets=device.startswith(_NVIDIA_PREFIX),
        devices=tuple(path for name in _GPU_DEVICES for path in Path("/dev").glob(name)),
        # A GPU's runtime reserves addresses for all host and device memory.
        limits=Limits(data_bytes=memory_bytes, file_bytes=_MAX_LOG_BYTES, open_files=1 << 16),
    )


def kernel_memory_limit() -> int:
    """Return the default memory limit in bytes: 3/4 of the machine's memory, at least 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(total // 4 * 3, _MIN_MEMORY_BYTES)
