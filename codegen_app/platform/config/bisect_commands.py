"""``KILN_BISECT``: the commands by which workers build and measure revisions of repositories.

It names a TOML file with a table for each repository, by the name that its revisions are sent with.
Without it, no worker builds anything for a bisection.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_SYSTEM_PROGRAMS = tuple(Path(name) for name in ("/bin", "/sbin", "/usr", "/lib", "/lib64"))
_MAX_MINUTES = 24 * 60
_MAX_GIB = 4096


@dataclass(frozen=True)
class BisectCommand:
    """A command that is started in an empty folder with a revision as its last argument, and what
    it may use besides that folder.

    It may ``read``, ``write`` and ``execute`` these files and folders, drive ``devices`` (files
    such as ``/dev/nvidia0``), and use the network if ``network``. ``device`` is the id of a device
    of Kiln that no other worker uses meanwhile. ``minutes`` limits its time, ``memory_gib`` each of
    its processes.
    """

    command: tuple[str, ...]
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    execute: tuple[Path, ...] = _SYSTEM_PROGRAMS
    devices: tuple[Path, ...] = ()
    device: str = ""
    network: bool = False
    minutes: int = 60
    memory_gib: int = 16
    environment: Mapping[str, str] = field(default_factory=dict)


def read(path: Path | None) -> dict[str, BisectCommand]:
    """Return the commands by repository. Raises ``ImproperlyConfigured`` with table and key."""
    if path is None:
        return {}
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ImproperlyConfigured(f"KILN_BISECT={path}: {error}") from None
    commands = {}
    for repository, table in tables.items():
        where = f"KILN_BISECT={path}: [{repository!r}]"
        if not isinstance(table, dict):
            raise ImproperlyConfigured(f"{where} is not a table")
        commands[repository] = _command(table, where)
    return commands


def _command(table: Mapping[str, Any], where: str) -> BisectCommand:
    known = {key.name for key in fields(BisectCommand)}
    if unknown := sorted(table.keys() - known):
        raise ImproperlyConfigured(f"{where} {unknown[0]}: unknown, use {', '.join(sorted(known))}")
    if not table.get("command"):
        raise ImproperlyConfigured(f"{where} command: missing")
    values = {name: _value(name, value, f"{where} {name}") for name, value in table.items()}
    program = Path(values["command"][0])
    if not program.is_absolute():
        raise ImproperlyConfigured(f"{where} command: {program} is not an absolute path")
    return BisectCommand(**values)


def _value(name: str, value: Any, where: str) -> Any:
    if name in ("command", "read", "write", "execute", "devices"):
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise ImproperlyConfigured(f"{where}: expected a list of texts")
        if name == "command":
            return tuple(value)
        if relative := [part for part in value if not Path(part).is_absolute()]:
            raise ImproperlyConfigured(f"{where}: {relative[0]!r} is not an absolute path")
        return tuple(Path(part) for part in value)
    if name in ("minutes", "memory_gib"):
        highest = _MAX_MINUTES if name == "minutes" else _MAX_GIB
        if type(value) is not int or not 1 <= value <= highest:
            raise ImproperlyConfigured(f"{where}: expected a whole number from 1 to {highest}")
    elif name == "environment":
        if not isinstance(value, dict) or not all(isinstance(part, str) for part in value.values()):
            raise ImproperlyConfigured(f"{where}: expected a table of texts")
    elif not isinstance(value, bool if name == "network" else str):
        expected = "true or false" if name == "network" else "a text"
        raise ImproperlyConfigured(f"{where}: expected {expected}")
    return value
