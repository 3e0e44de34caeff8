"""Start a program in a sandbox, or enter one.

Landlock rules, seccomp filters and capabilities belong to a thread and are inherited by what it
starts: a short-lived thread restricts itself and starts the program. There is no intermediate
launcher, and none of our code runs between fork and exec.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any

from py_landlock.prctl import set_no_new_privs

from scheduler.sandbox import landlock, privileges, seccomp
from scheduler.sandbox.model import Limits, Sandbox
from scheduler.sandbox.status import FILES, NETWORK, in_force


def start(command: Sequence[str], sandbox: Sandbox, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command in the sandbox and return its ``Popen``; ``options`` are Popen's.

    Parts that this machine does not support are left out (see ``in_force``). Raises ``OSError`` if
    the program cannot be started or a supported part cannot be applied.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def restrict_and_start() -> None:
        try:
            _restrict(sandbox)
            process = subprocess.Popen(command, **options)
            with suppress(ProcessLookupError):  # it has already ended
                for kind, both in _limits(sandbox.limits):
                    resource.prlimit(process.pid, kind, both)
            started.set_result(process)
        except BaseException as error:  # noqa: BLE001 -- raised again on the caller's thread
            started.set_exception(error)

    in_force()  # determined here, on a thread that is not yet restricted
    thread = Thread(target=restrict_and_start, name="sandbox")
    thread.start()
    thread.join()
    return started.result()


def enter(sandbox: Sandbox) -> None:
    """Put this process, which must have only one thread, into the sandbox permanently.

    Raises ``OSError`` if a supported part cannot be applied.
    """
    for kind, both in _limits(sandbox.limits):
        resource.setrlimit(kind, both)
    _restrict(sandbox)
    if in_force().has(NETWORK) and not sandbox.processes:
        seccomp.forbid_new_processes()


def _restrict(sandbox: Sandbox) -> None:
    offered = in_force()
    set_no_new_privs()  # both require it; it also keeps setuid programs from gaining rights
    if offered.has(NETWORK):
        seccomp.restrict(packet_sockets=sandbox.packet_sockets)
    if offered.has(FILES) or (landlock.is_available() and not sandbox.processes):
        landlock.restrict(sandbox)
    if privileges.is_root():
        privileges.drop_capabilities()


def _limits(limits: Limits) -> list[tuple[int, tuple[int, int]]]:
    """Return soft and hard limits by resource number, none above this process's own limits."""
    numbers = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_DATA: limits.data_bytes,
        resource.RLIMIT_CPU: limits.cpu_seconds,
    }
    result = []
    for kind, value in numbers.items():
        if value is None:
            continue
        # At the soft limit a process gets SIGXCPU; it is killed at the hard limit.
        soft, hard = value, value + (5 if kind == resource.RLIMIT_CPU else 0)
        own_hard = resource.getrlimit(kind)[1]
        if own_hard != resource.RLIM_INFINITY:
            soft, hard = min(soft, own_hard), min(hard, own_hard)
        result.append((kind, (soft, hard)))
    return result
