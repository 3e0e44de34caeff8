"""Root's privileges: dropped by the calling thread, and so by what it starts."""

from __future__ import annotations

import ctypes
import os
import pwd

_VERSION_3 = 0x20080522  # linux/capability.h
_WORDS = 6  # effective, permitted and inheritable, twice 32 bits each


def drop_capabilities() -> None:
    """Drop all capabilities of the calling thread. A root thread is then an ordinary user who owns
    root's files. Needs no_new_privs, so that no program restores them. Raises ``OSError``."""
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    no_capabilities = (ctypes.c_uint32 * _WORDS)()
    if ctypes.CDLL(None, use_errno=True).capset(header, no_capabilities) != 0:
        error_number = ctypes.get_errno()
        raise OSError(error_number, f"capabilities cannot be given up: {os.strerror(error_number)}")


def is_root() -> bool:
    return os.geteuid() == 0


def user_name() -> str:
    """Return the name of this process's user."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
