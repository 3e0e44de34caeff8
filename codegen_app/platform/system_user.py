"""The system user for processes that root starts: PostgreSQL's, and the demo's.

Root's rights are only used for what needs them: creating the user, and giving it the installation's
folder. Everything else runs as that user, like an ordinary user's demo.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings

from codegen_app.platform.config import layout

NAME = "kiln-postgres"
STATE_FOLDER = Path("/var/lib")

# linux/prctl.h, linux/capability.h
_PR_SET_KEEPCAPS = 8
_CAPABILITY_VERSION_3 = 0x20080522
_FILE_RIGHTS = (1 << 1) | (1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
# How deep a package's folder is checked: files of one installation have the same permissions.
_PACKAGE_DEPTH = 2


class SystemUserError(Exception):
    """The user could not be created: one line that says why."""


def exists(name: str = NAME) -> bool:
    """Return whether the machine has the user."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def uid() -> int:
    """Return the user's number; raises ``KeyError`` if there is none."""
    return pwd.getpwnam(NAME).pw_uid


def is_current() -> bool:
    """Return whether this process runs as the system user."""
    return os.geteuid() != 0 and exists() and uid() == os.geteuid()


def become_owner(var: Path) -> None:
    """Continue as the system user if root runs a command and the installation belongs to that user,
    so that no file is left that the user cannot read or replace. Open files stay open."""
    if os.geteuid() == 0 and exists() and var.is_dir() and var.stat().st_uid == uid():
        become(keep_file_rights=True)


def ensure(name: str = NAME) -> None:
    """Create the user if there is none. One process at a time: of two concurrent ``useradd`` the
    later one overwrites the other's entry, whose files then belong to nobody."""
    if exists(name):
        return
    with (STATE_FOLDER / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not exists(name):
            _add(name)


def describe_user() -> str:
    """One sentence naming the user that the application runs as."""
    uid = os.geteuid()
    if uid == 0:
        reason = f": {settings.ROOT_BECAUSE}" if settings.ROOT_BECAUSE else ""
        return f"Everything but PostgreSQL runs as root{reason}."
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return f"Everything runs as the user {name}."


def first_inaccessible(paths: Iterable[Path]) -> Path | None:
    """Return the first of these paths, or of the folders above them, that the user may not read or
    enter. A process that has become the user asks the system: permissions, ACLs and mounts all
    count."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            become()
            closed = next((path for path in _with_parents(paths) if not _is_accessible(path)), None)
            os.write(writing, os.fsencode(closed) if closed else b"")
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        closed_path = answer.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        return Path("/")  # the check itself failed
    return Path(os.fsdecode(closed_path)) if closed_path else None


def become(*, keep_file_rights: bool = False) -> None:
    """Continue as the user, permanently. Devices that only their group may use stay usable.

    With ``keep_file_rights`` this process (no child process) opens files as root does, and its new
    files belong to the user.
    """
    user = pwd.getpwnam(NAME)
    if keep_file_rights:
        _checked(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
    # The groups, except root's, that may use this machine's GPUs.
    devices = (Path("/dev/kfd"), *Path("/dev/dri").glob("renderD*"))
    stats = [device.stat() for device in devices if device.exists()]
    groups = {stat.st_gid for stat in stats if stat.st_gid and stat.st_mode & 0o060 == 0o060}
    os.setgroups(sorted(groups))
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    if keep_file_rights:
        _set_file_rights()


def chown_tree(folder: Path) -> None:
    """Give the user a folder and its content. Links are skipped, and so are files with several
    names: one may lie outside."""
    user = pwd.getpwnam(NAME)
    os.chown(folder, user.pw_uid, user.pw_gid)
    for _, folders, files, above in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            stat = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.st_uid != user.pw_uid and (name in folders or stat.st_nlink == 1):
                os.chown(name, user.pw_uid, user.pw_gid, dir_fd=above, follow_symlinks=False)


def program_files(packages: Path) -> Iterator[Path]:
    """Yield what a process of Kiln reads: the interpreter, Kiln's files, the other packages."""
    yield Path(sys.executable)
    yield Path(sys.executable).resolve()
    yield Path(os.__file__)
    for file in layout.layout_of(packages).own_files():
        yield file
        yield from (path for path in file.rglob("*") if "__pycache__" not in str(path))
    for entry in filter(None, sys.path):
        folder = Path(entry)
        if folder.is_dir() and (folder != packages or layout.layout_of(packages).installed):
            for depth in range(1, _PACKAGE_DEPTH + 1):
                yield from folder.glob("/".join("*" * depth))


def _with_parents(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        for part in (*reversed(path.parents), path):
            if part not in seen:
                seen.add(part)
                yield part


def _is_accessible(path: Path) -> bool:
    # os.path, since pathlib raises if a parent folder is closed
    if os.path.islink(path):  # noqa: PTH114
        return True  # the link's target counts
    return os.access(path, os.X_OK if os.path.isdir(path) else os.R_OK)  # noqa: PTH112


def _add(name: str) -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise SystemUserError(
            "PostgreSQL does not run as root and there is no useradd to make a user for it: "
            "run as an ordinary user, or set DATABASE_URL"
        )
    process = subprocess.run(
        (
            *(useradd, "--system", "--user-group", "--no-create-home"),
            *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name),
        ),
        check=False,
        capture_output=True,
        text=True,
    )
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or ["no message"]
        raise SystemUserError(f"no user for PostgreSQL: {lines[-1]}")


def _set_file_rights() -> None:
    """Call capset(2) for this thread: of the rights to access files, those that it is permitted are
    effective, and none is inheritable."""
    lines = Path("/proc/self/status").read_text().splitlines()
    permitted = next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)
    mask = _FILE_RIGHTS & permitted
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    _checked(ctypes.CDLL(None, use_errno=True).capset(header, data))


def _checked(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
