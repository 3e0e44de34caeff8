"""What a fenced process may do. Everything that is not named here it may not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
# Where shared libraries lie, and what finds them.
SYSTEM_LIBRARIES = tuple(
    Path(name)
    for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
)

# What an interpreter and its libraries ask of the machine.
SYSTEM_FILES = (
    *(Path(name) for name in ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat")),
    *(Path("/proc/sys/vm"), Path("/sys/devices/system"), Path("/usr/share/zoneinfo")),
)


@dataclass(frozen=True)
class Limits:
    """What one process may take: bytes of address space, of memory of its own (``data_bytes``) and
    of one file, files open at once, seconds of processor time. None: nothing here limits it."""

    memory_bytes: int | None = None
    data_bytes: int | None = None
    file_bytes: int = 256 * MIB
    open_files: int = 1024
    cpu_seconds: int | None = None


@dataclass(frozen=True)
class Sandbox:
    """The files and folders that a process may ``read``, ``write`` (and read), ``execute`` (and
    read), and the ``devices`` that it may drive; what is not there is left out.

    No fenced process has a network. With ``packet_sockets`` it may make local sockets of sequenced
    packets (SOCK_SEQPACKET), as NVIDIA's driver does for itself: no server takes such ones here.
    One without ``processes`` starts none, once it has entered.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    execute: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    processes: bool = False
    packet_sockets: bool = False
    limits: Limits = Limits()
