"""Looking at processes, without polling where the system can tell."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import connection

from codegen_app.platform import system_user
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SECRET_KEY = "only for tests, with thirty-two characters"


def interpreter() -> str:
    """This one, or the system's of the same version where root's home holds this one."""
    if os.geteuid() == 0:
        system_user.ensure()
        closed = system_user.first_inaccessible([Path(sys.executable).resolve()])
        name = f"python3.{sys.version_info[1]}"
        return (closed and shutil.which(name, path="/usr/bin:/usr/local/bin")) or sys.executable
    return sys.executable


def worker_environment(var: Path, broker: str) -> dict[str, str]:
    """For processes that work on the test's database, with files of their own."""
    database = connection.settings_dict
    host, port = database["HOST"], database["PORT"] or 5432
    who = f"{database['USER']}:{database['PASSWORD']}"
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
        "DATABASE_URL": f"postgresql://{who}@/{database['NAME']}?host={host}&port={port}",
        "KILN_VAR": str(var),
        "TMPDIR": str(var),
        "KILN_BROKER_URL": broker,
        "KILN_CODE_CACHE": str(settings.CODE_CACHE_DIR),
        "KILN_WORK_LEASE_S": "60",  # none runs out by itself: support/leases.py
        "KILN_SECRET_KEY": SECRET_KEY,
        "KILN_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "KILN_HISTORY_DAYS": "0",  # histories of tests are of any year
        "KILN_TORCH": "0",  # seconds a graph: test_torch_comparisons.py has it done
    }


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def owners_of(pids: Iterable[int]) -> set[int]:
    """The users of those of the processes that are there still: a compiler may end meanwhile."""
    found = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            if alive(pid):
                found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found


def wait_until_gone(pid: int) -> None:
    """pidfd_open becomes readable when the process ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    readable, _, _ = select.select([descriptor], [], [], PATIENCE_S)
    os.close(descriptor)
    assert readable, f"process {pid} is still there"
