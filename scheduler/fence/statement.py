"""What of the fence this machine offers, and why the rest is missing, in plain words."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache

from scheduler.fence import calls, files, user
from scheduler.outcome import UserError

FILES, NETWORK, SIGNALS, LIMITS = "files", "network", "other processes", "limits"
USER = "another user"


@dataclass(frozen=True)
class Part:
    """One part of the fence: whether it is in force here, and what that means or why not. Without
    one that is ``needed`` the fence is not whole."""

    name: str
    in_force: bool
    note: str
    needed: bool = True


@dataclass(frozen=True)
class Statement:
    """All parts, in the order in which they are shown."""

    parts: tuple[Part, ...]

    def has(self, name: str) -> bool:
        """Whether the part of that name is in force."""
        return any(part.name == name and part.in_force for part in self.parts)

    @property
    def missing(self) -> tuple[Part, ...]:
        """What is needed and not in force."""
        return tuple(part for part in self.parts if part.needed and not part.in_force)


@cache
def in_force() -> Statement:
    """What holds for compilers, measured kernels and readers of files that start here."""
    return Statement((_files(), _network(), _signals(), _limits(), _user()))


def require() -> None:
    """Raise ``UserError`` naming the parts of the fence that this machine does not offer."""
    if missing := in_force().missing:
        why = "; ".join(f"{part.name}: {part.note}" for part in missing)
        raise UserError(f"a fence is required and not whole here ({why})")


def _files() -> Part:
    try:
        version = files.version()
    except OSError as error:
        return Part(FILES, False, f"any file of this user can be read and written: {error}")
    note = f"their own folder and read-only tools, by Landlock {version}"
    if version < files.MOVES_SINCE:
        note = (
            f"kernels and readers keep to their own folder, by Landlock {version}; compilers can"
            " read and write any file of this user: Linux 5.19 has what they need"
        )
        return Part(FILES, False, note)
    if version < files.TRUNCATES_SINCE:
        note += "; a file of this user elsewhere can still be emptied (not from Linux 6.2 on)"
    return Part(FILES, True, note)


def _network() -> Part:
    if not sys.platform.startswith("linux"):
        return Part(NETWORK, False, "sockets are only refused on Linux")
    try:
        calls.library()
    except OSError as error:
        return Part(NETWORK, False, f"connections can be made: {error}")
    return Part(NETWORK, True, "no socket of any kind, by seccomp")


def _signals() -> Part:
    try:
        if files.version() >= files.SIGNALS_SINCE:
            return Part(SIGNALS, True, "not seen into, not signalled; kernels start none")
    except OSError:
        pass
    if _network().in_force:
        note = "not seen into; kernels signal and start none, compilers could signal this user's"
        return Part(SIGNALS, True, note)
    return Part(SIGNALS, False, "processes of this user can be ended and seen into")


def _user() -> Part:
    """They run as whoever starts them: only root could make them somebody else."""
    if user.is_root():
        note = "they run as root, without its rights: run workers and pages as an ordinary user"
        return Part(USER, False, note, needed=False)
    note = f"they run as {user.user_name()}, who starts them: only the parts above stand between"
    return Part(USER, False, note, needed=False)


def _limits() -> Part:
    return Part(LIMITS, True, "memory, time, size of files, open files; no core files")
