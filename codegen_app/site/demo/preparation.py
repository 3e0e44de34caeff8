"""Preparation before pages are served: the user, the database, static files, an admin."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from codegen_app.platform import postgres, system_user
from codegen_app.platform.config import layout
from scheduler.errors import UserError

ADMIN = "admin"
_DISK_NEEDED_BYTES = 1 << 30


def check_disk(folder: Path) -> None:
    """Raise ``UserError`` if there is too little room for database and compiled code."""
    folder.mkdir(parents=True, exist_ok=True)
    database = postgres.cluster_for(folder).home
    for place in (folder, next(path for path in (database, *database.parents) if path.exists())):
        free = shutil.disk_usage(place).free
        if free < _DISK_NEEDED_BYTES:
            needed = _DISK_NEEDED_BYTES >> 20
            raise UserError(f"{place}: {free >> 20} MiB are free, the demo needs {needed} MiB")


def check_port(host: str, port: int) -> None:
    """Raise ``UserError`` if another process uses the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UserError(
                    f"port {port} is taken: stop what uses it, or give the demo"
                    f" another, such as {port + 1}"
                ) from None
            raise UserError(f"port {port} cannot be used: {error.strerror}") from None


def secret_key(folder: Path) -> str:
    """Return the key that signs sessions: created once, readable only for its owner, and written
    atomically, since a full disk would leave an empty one."""
    file = folder / "secret-key"
    if not file.exists() or not file.read_text():
        part = folder / "secret-key.part"
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as new:
            new.write(secrets.token_urlsafe(50))
            new.flush()
            os.fsync(new.fileno())
        part.replace(file)
    return file.read_text()


def fresh_folder(folder: Path) -> Path:
    """Return the folder, emptied: what killed processes left in it is useless."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def remove_outdated(var: Path) -> None:
    """Remove files of earlier versions: messages as files, and the schedule of their beat."""
    shutil.rmtree(var / "queue", ignore_errors=True)
    for file in var.glob("beat-schedule*"):
        file.unlink(missing_ok=True)


def prepare_application() -> str | None:
    """Create tables, static files and the admin; return the admin's password if it is new."""
    call_command("migrate", verbosity=0, interactive=False)
    collect_static_files()
    users = get_user_model()
    if users.objects.filter(username=ADMIN).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.objects.create_superuser(ADMIN, password=password)
    return password


def collect_static_files() -> None:
    """Copy the browser's files into one folder. Incomplete copies of a killed start, or a full
    disk, are newer than their sources, and would be kept: then all are copied again."""
    folder: Path = settings.STATIC_ROOT
    marker = folder.with_name(f"{folder.name}-collected")
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
    marker.unlink(missing_ok=True)
    call_command("collectstatic", verbosity=0, interactive=False)
    os.sync()
    marker.touch()


def database_is_ours() -> bool:
    """Return whether the database is the embedded one, which the demo starts and stops."""
    host = settings.DATABASES["default"]["HOST"]
    return bool(host == str(postgres.cluster_for(settings.VAR_DIR).sockets))


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
