"""Files: Landlock rules on the calling thread, inherited by everything that it starts.

Rights that the kernel's version of Landlock does not know are left out, so old kernels do not
restrict them; ``status.py`` describes what each ``version`` restricts.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

from py_landlock import (
    AccessFs,
    AccessNet,
    LandlockError,
    PathBeneathAttr,
    RulesetAttr,
    RulesetFd,
    add_rule,
    create_ruleset,
    get_abi_version,
    restrict_self,
)
from py_landlock.abi import ABIVersion, get_supported_fs, get_supported_net, get_supported_scope

from scheduler.sandbox.model import NETWORK_FILES, Sandbox

_READ = AccessFs.READ_FILE | AccessFs.READ_DIR
_WRITE = (
    _READ
    | AccessFs.WRITE_FILE
    | AccessFs.TRUNCATE
    | AccessFs.MAKE_REG
    | AccessFs.MAKE_DIR
    | AccessFs.MAKE_SYM
    | AccessFs.REMOVE_FILE
    | AccessFs.REMOVE_DIR
    | AccessFs.REFER
)
_DEVICE = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.READ_DIR | AccessFs.IOCTL_DEV
_EXECUTE = _READ | AccessFs.EXECUTE
_FILE_ACCESS = (
    AccessFs.EXECUTE
    | AccessFs.WRITE_FILE
    | AccessFs.READ_FILE
    | AccessFs.TRUNCATE
    | AccessFs.IOCTL_DEV
)
# Devices that every process may use; they hold no data of any user.
_NULL_DEVICES = (Path("/dev/null"), Path("/dev/zero"), Path("/dev/full"))
_RANDOM = (Path("/dev/urandom"), Path("/dev/random"))
# Landlock versions. Before the first, a file cannot be moved to another folder at all.
MOVES_SINCE, TRUNCATES_SINCE, SIGNALS_SINCE = 2, 3, 6


@cache
def version() -> int:
    """Return the kernel's Landlock version, 1 or more. Raises ``OSError`` with a one-line reason if
    the kernel has none."""
    try:
        return get_abi_version()
    except (LandlockError, RuntimeError) as error:
        raise OSError(str(error)) from None


def is_available() -> bool:
    """Whether the kernel has Landlock, of any version."""
    try:
        return version() > 0
    except OSError:
        return False


def restrict(sandbox: Sandbox) -> None:
    """Restrict the calling thread to the sandbox's files. Needs no_new_privs or root.

    Raises ``OSError`` if Landlock is missing or cannot be applied.
    """
    abi = ABIVersion(version())
    attributes = RulesetAttr()
    attributes.handled_access_fs = get_supported_fs(abi)
    attributes.handled_access_net = get_supported_net(abi)
    if sandbox.network:
        attributes.handled_access_net &= ~AccessNet.CONNECT_TCP
    attributes.scoped = get_supported_scope(abi)
    try:
        ruleset = create_ruleset(attributes)
        try:
            for paths, access in (
                ((*sandbox.read, *_RANDOM, *(NETWORK_FILES if sandbox.network else ())), _READ),
                (sandbox.write, _WRITE),
                (sandbox.execute, _EXECUTE),
                ((*sandbox.devices, *_NULL_DEVICES), _DEVICE),
            ):
                for path in dict.fromkeys(paths):
                    _allow(ruleset, path, access & get_supported_fs(abi))
            restrict_self(ruleset, None)
        finally:
            os.close(ruleset)
    except LandlockError as error:
        raise OSError(f"Landlock: {error}") from None


def _allow(ruleset: RulesetFd, path: Path, access: AccessFs) -> None:
    """Add one rule; skip a path that does not exist or that this user may not look up."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        rule = PathBeneathAttr()
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule.allowed_access = access if is_folder else access & _FILE_ACCESS
        rule.parent_fd = descriptor
        add_rule(ruleset, rule)
    finally:
        os.close(descriptor)
