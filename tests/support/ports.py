"""Ports of this machine that nobody listens on.

None of those that Linux gives to connections (32768 and above), and each locked for as long as
this process lives: nobody takes one between its choice and its use, or while a server is away that
comes back.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

_FIRST, _COUNT = 20_000, 10_000
_LOCKS = Path(tempfile.gettempdir()) / f"kiln-test-ports-{os.getuid()}"
_held: dict[int, IO[bytes]] = {}


def free_port() -> int:
    """One that is this process's from now on."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Some that differ."""
    found = list(islice(_free(), count))
    assert len(found) == count, "there are no ports left"
    return found


def _free() -> Iterator[int]:
    _LOCKS.mkdir(exist_ok=True)
    begin = os.getpid()  # each process begins elsewhere
    for n in range(_COUNT):
        port = _FIRST + (begin + n) % _COUNT
        if port not in _held and _is_ours(port):
            yield port


def _is_ours(port: int) -> bool:
    lock = (_LOCKS / str(port)).open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", port))
    except OSError:
        lock.close()
        return False
    _held[port] = lock
    return True
