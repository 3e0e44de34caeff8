"""Starting a program behind a fence, and going behind one.

Landlock's rules, seccomp's filters and the user belong to a thread and are inherited by what it
starts: a thread that lives for this alone restricts itself and starts the program. There is no
launcher in between, and nothing of ours runs between fork and exec.
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


def start(command: Sequence[str], fence: Sandbox, **options: Any) -> subprocess.Popen[bytes]:
    """``Popen`` of the command behind the fence; ``options`` are Popen's.

    What this machine does not offer is left out (``in_force`` says what). Raises ``OSError`` where
    the program cannot be started, or a part that is offered cannot be put up.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def restrict_and_start() -> None:
        try:
            _restrict(fence)
            process = subprocess.Popen(command, **options)
            with suppress(ProcessLookupError):  # it is over already
                for kind, both in _limits(fence.limits):
                    resource.prlimit(process.pid, kind, both)
            started.set_result(process)
        except BaseException as error:  # noqa: BLE001 -- raised again on the caller's thread
            started.set_exception(error)

    in_force()  # found out by a thread that may look
    thread = Thread(target=restrict_and_start, name="fence")
    thread.start()
    thread.join()
    return started.result()


def enter(fence: Sandbox) -> None:
    """Put this process, which has one thread yet, behind the fence for good.

    Raises ``OSError`` where a part that is offered cannot be put up.
    """
    for kind, both in _limits(fence.limits):
        resource.setrlimit(kind, both)
    _restrict(fence)
    if in_force().has(NETWORK) and not fence.processes:
        seccomp.forbid_new_processes()


def _restrict(fence: Sandbox) -> None:
    offered = in_force()
    set_no_new_privs()  # both ask for it; and no program gains rights by its owner
    if offered.has(NETWORK):
        seccomp.restrict(packet_sockets=fence.packet_sockets)
    if offered.has(FILES) or (landlock.is_available() and not fence.processes):
        landlock.restrict(fence)
    if privileges.is_root():
        privileges.drop_capabilities()


def _limits(limits: Limits) -> list[tuple[int, tuple[int, int]]]:
    """Limits by their numbers, soft and hard; none above what this process has itself."""
    numbers = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_DATA: limits.data_bytes,
        resource.RLIMIT_CPU: limits.cpu_seconds,
    }
    # Out of time, a process is told so, and killed where it does not listen.
    grace = {resource.RLIMIT_CPU: 5}
    return [
        (
            kind,
            (
                _clamp_to_hard_limit(kind, value),
                _clamp_to_hard_limit(kind, value + grace.get(kind, 0)),
            ),
        )
        for kind, value in numbers.items()
        if value is not None
    ]


def _clamp_to_hard_limit(kind: int, value: int) -> int:
    """The value, or what this process is itself limited to."""
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
