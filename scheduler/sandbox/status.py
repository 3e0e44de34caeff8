"""Which parts of the sandbox this machine supports, and why the others are missing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache

from scheduler.errors import UserError
from scheduler.sandbox import landlock, privileges, seccomp

FILES, NETWORK, SIGNALS, LIMITS = "files", "network", "other processes", "limits"
USER = "another user"


@dataclass(frozen=True)
class Protection:
    """One part of the sandbox: whether it is in force here, and what that means or why it is not.
    The sandbox is incomplete without a part that is ``needed``."""

    name: str
    in_force: bool
    note: str
    needed: bool = True


@dataclass(frozen=True)
class Status:
    """All parts, in display order."""

    parts: tuple[Protection, ...]

    def has(self, name: str) -> bool:
        """Whether the part with that name is in force."""
        return any(part.name == name and part.in_force for part in self.parts)

    @property
    def missing(self) -> tuple[Protection, ...]:
        """Return the needed parts that are not in force."""
        return tuple(part for part in self.parts if part.needed and not part.in_force)


@cache
def sandbox_status() -> Status:
    """Return the protections of compilers, measured kernels and file readers that start here."""
    limits = Protection(LIMITS, True, "memory, time, file size, open files; no core files")
    # Child processes run as the user who starts them: only root could change the user.
    note = f"children run as {privileges.user_name()}, like Kiln: only the parts above protect it"
    if privileges.is_root():
        note = "children run as root without capabilities: run Kiln as an ordinary user"
    user = Protection(USER, False, note, needed=False)
    return Status((_files_protection(), _network_protection(), _signals_protection(), limits, user))


def require() -> None:
    """Raise ``UserError`` naming the parts of the sandbox that this machine does not support."""
    if missing := sandbox_status().missing:
        why = "; ".join(f"{part.name}: {part.note}" for part in missing)
        raise UserError(f"the sandbox is required, but incomplete on this machine ({why})")


def _files_protection() -> Protection:
    try:
        version = landlock.version()
    except OSError as error:
        return Protection(FILES, False, f"all files of this user can be read and written: {error}")
    note = f"only their own folder and read-only tools (Landlock {version})"
    if version < landlock.MOVES_SINCE:
        note = (
            f"kernels and readers only have their own folder (Landlock {version}); compilers can"
            " read and write all files of this user: use Linux 5.19 or newer"
        )
        return Protection(FILES, False, note)
    if version < landlock.TRUNCATES_SINCE:
        note += "; other files of this user can be truncated (prevented since Linux 6.2)"
    return Protection(FILES, True, note)


def _network_protection() -> Protection:
    if not sys.platform.startswith("linux"):
        return Protection(NETWORK, False, "sockets are blocked only on Linux")
    try:
        seccomp.library()
    except OSError as error:
        return Protection(NETWORK, False, f"connections are possible: {error}")
    return Protection(NETWORK, True, "no sockets (seccomp)")


def _signals_protection() -> Protection:
    try:
        if landlock.version() >= landlock.SIGNALS_SINCE:
            return Protection(SIGNALS, True, "cannot be read or signalled; kernels start none")
    except OSError:
        pass
    if _network_protection().in_force:
        note = "cannot be read; kernels signal and start none; compilers can signal them"
        return Protection(SIGNALS, True, note)
    return Protection(SIGNALS, False, "processes of this user can be killed and read")
