"""What a fenced process may do. Everything that is not named here it may not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limits:
    """What one process may take: bytes of address space and of one file, files open at once,
    seconds of processor time; None where something else limits it."""

    memory_bytes: int | None = None
    file_bytes: int = 256 * MIB
    open_files: int = 1024
    cpu_seconds: int | None = None


@dataclass(frozen=True)
class Fence:
    """The files and folders that a process may ``read``, ``write`` (and read), ``execute`` (and
    read), and the ``devices`` that it may drive; what is not there is left out.

    No fenced process has a network. One without ``processes`` starts none, once it has entered.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    execute: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    processes: bool = False
    limits: Limits = Limits()
