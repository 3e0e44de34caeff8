"""The user of the demo's processes: a system user if root starts it and that user can run it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from django.conf import settings

from codegen_app.platform import postgres, system_user
from codegen_app.platform.config import layout
from scheduler.errors import UserError

# A folder without either of these, and with more than the early files, is not Kiln's.
_OWN_FILES = {"cluster-id", "secret-key"}
_EARLY_FILES = {"demo.lock", "tests"}


def leave_root(var: Path, say: Callable[[str], None]) -> str:
    """Continue as the system user: as root this does not return if that is possible. Otherwise
    return why not; an empty string if the caller is not root. Raises ``UserError``."""
    if os.geteuid() != 0:
        return ""
    try:
        system_user.ensure()
    except system_user.SystemUserError as error:
        return str(error)
    closed = _access_problem(var)
    cluster = postgres.cluster_for(var)
    if moved := postgres.claim(var):
        say(moved)
    if closed:
        if postgres.cluster_for(var) != cluster:  # the settings name the earlier database
            _re_exec()
        return closed
    try:
        postgres.prepare(postgres.cluster_for(var))
        system_user.chown_tree(var)
    except postgres.PostgresError as error:
        raise UserError(str(error)) from None
    system_user.become()
    os.environ.update(KILN_VAR=str(var), HOME=str(var), USER=system_user.NAME)
    return _re_exec()


def _re_exec() -> NoReturn:
    """Execute the same command again, with settings that are read anew."""
    os.chdir(layout.layout_of(settings.BASE_DIR).work)
    command = (sys.executable, "-m", "codegen_app", *sys.argv[1:])
    os.execv(sys.executable, command)  # noqa: S606 - no shell is meant


def _access_problem(var: Path) -> str:
    """Return why the system user cannot run everything, or an empty string."""
    user = system_user.NAME
    if closed := system_user.first_inaccessible(system_user.program_files(settings.BASE_DIR)):
        return f"{closed} is closed to the user {user}"
    if closed := system_user.first_inaccessible(var.parents):
        return f"{closed} is closed to the user {user} (set KILN_VAR to another folder)"
    if var.stat().st_uid not in {0, system_user.uid()}:
        return f"{var} belongs to another user"
    entries = {path.name for path in var.iterdir()}
    if not entries <= _EARLY_FILES and not entries & _OWN_FILES:
        return f"{var} holds files that are not Kiln's"
    return ""
