"""The permissions of a sandboxed process. Anything not named here is denied."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
# Where shared libraries are, and the files that the loader finds them with.
SYSTEM_LIBRARIES = tuple(
    Path(name)
    for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
)

# What an interpreter and its libraries read about the machine.
SYSTEM_FILES = (
    *(Path(name) for name in ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat")),
    *(Path("/proc/sys/vm"), Path("/sys/devices/system"), Path("/usr/share/zoneinfo")),
)


# What the C library and TLS read to find and check other hosts.
NETWORK_FILES = tuple(
    Path("/etc", name)
    for name in (
        "hosts",
        "nsswitch.conf",
        "resolv.conf",
        "services",
        "ssl",
        "pki",
        "ca-certificates",
    )
)


@dataclass(frozen=True)
class Limits:
    """The resource limits of one process: bytes of address space, bytes of private memory
    (``data_bytes``), bytes of one file, open files, seconds of processor time. None: no limit is
    set here."""

    memory_bytes: int | None = None
    data_bytes: int | None = None
    file_bytes: int = 256 * MIB
    open_files: int = 1024
    cpu_seconds: int | None = None


@dataclass(frozen=True)
class Sandbox:
    """The files and folders that a process may ``read``, ``write`` (and read), ``execute`` (and
    read), and the ``devices`` that it may drive. Paths that do not exist are left out.

    With ``network`` it may connect to other hosts, and to servers of this host that listen on an IP
    address, but accepts no TCP connections; otherwise it has no network. With ``packet_sockets`` it
    may create local sequenced-packet sockets (SOCK_SEQPACKET), which NVIDIA's driver needs
    internally; no server here accepts them. Without ``processes`` it starts no process once it has
    entered the sandbox. With ``one_group`` what it starts stays in its process group, so that all
    of it can be ended: calls that leave the group succeed and do nothing.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    execute: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    processes: bool = False
    packet_sockets: bool = False
    network: bool = False
    one_group: bool = False
    limits: Limits = Limits()
