"""Start a program in a sandbox, or enter one.

Landlock rules, seccomp filters and capabilities belong to a thread and are inherited by what it
starts: a short-lived thread restricts itself and starts the program. There is no intermediate
launcher, and none of our code runs between fork and exec. A command that must stay in its process
group has a launcher (``command.py``), since it must lead the group first.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

from py_landlock.prctl import set_no_new_privs

from scheduler.sandbox import landlock, privileges, seccomp
from scheduler.sandbox.model import Limits, Sandbox
from scheduler.sandbox.status import FILES, NETWORK, sandbox_status


def start(command: Sequence[str], sandbox: Sandbox, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command in the sandbox and return its ``Popen``; ``options`` are Popen's.

    Parts that this machine does not support are left out (see ``sandbox_status``). Raises
    ``OSError`` if the program cannot be started or a supported part cannot be applied; a command
    that stays in one group then fails with a line of output.
    """
    if sandbox.one_group:  # it must lead its group before calls that change groups are denied
        return subprocess.Popen(_by_itself(command, sandbox), **options)
    started: Future[subprocess.Popen[bytes]] = Future()

    def restrict_and_start() -> None:
        try:
            _restrict(sandbox)
            process = subprocess.Popen(command, **options)
            with suppress(ProcessLookupError):  # it has already ended
                for resource_number, soft_and_hard in _resource_limits(sandbox.limits):
                    resource.prlimit(process.pid, resource_number, soft_and_hard)
            started.set_result(process)
        except BaseException as error:  # noqa: BLE001 -- raised again on the caller's thread
            started.set_exception(error)

    sandbox_status()  # determined here, on a thread that is not yet restricted
    thread = Thread(target=restrict_and_start, name="sandbox")
    thread.start()
    thread.join()
    return started.result()


def _by_itself(command: Sequence[str], sandbox: Sandbox) -> list[str]:
    """Return the command that enters the sandbox itself. The interpreter ignores its environment,
    which is the command's."""
    folder = str(Path(__file__).resolve().parents[2])
    code = (
        f"import sys; sys.path.insert(0, {folder!r});"
        " from scheduler.sandbox.command import main; main()"
    )
    policy = json.dumps(asdict(sandbox), default=str)
    return [sys.executable, "-I", "-c", code, policy, *command]


def enter(sandbox: Sandbox) -> None:
    """Put this process, which must have only one thread, into the sandbox permanently.

    Raises ``OSError`` if a supported part cannot be applied.
    """
    for resource_number, soft_and_hard in _resource_limits(sandbox.limits):
        resource.setrlimit(resource_number, soft_and_hard)
    _restrict(sandbox)
    if sandbox_status().has(NETWORK) and not sandbox.processes:
        seccomp.forbid_new_processes()


def _restrict(sandbox: Sandbox) -> None:
    status = sandbox_status()
    set_no_new_privs()  # both require it; it also keeps setuid programs from gaining rights
    if status.has(NETWORK):
        seccomp.restrict(
            packet_sockets=sandbox.packet_sockets,
            network=sandbox.network,
            one_group=sandbox.one_group,
        )
    if status.has(FILES) or (landlock.is_available() and not sandbox.processes):
        landlock.restrict(sandbox)
    if privileges.is_root():
        privileges.drop_capabilities()


def _resource_limits(limits: Limits) -> list[tuple[int, tuple[int, int]]]:
    """Return soft and hard limits by resource number, none above this process's own limits."""
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_DATA: limits.data_bytes,
        resource.RLIMIT_CPU: limits.cpu_seconds,
    }
    result = []
    for resource_number, value in values.items():
        if value is None:
            continue
        # At the soft limit a process gets SIGXCPU; it is killed at the hard limit.
        soft, hard = value, value + (5 if resource_number == resource.RLIMIT_CPU else 0)
        process_hard = resource.getrlimit(resource_number)[1]
        if process_hard != resource.RLIM_INFINITY:
            soft, hard = min(soft, process_hard), min(hard, process_hard)
        result.append((resource_number, (soft, hard)))
    return result
