"""Where an installation keeps its PostgreSQL.

An ordinary user's cluster is in the installation's folder. Root's is under /var/lib, since its
system user may not enter every checkout; ``cluster-id`` in the installation's folder names it, so
that a moved checkout keeps its database.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codegen_app.platform import system_user

_ID_FILE = "cluster-id"
_ID = re.compile(r"[0-9a-f]{12}")
_HOLDER = "installation"  # in the cluster's folder: the path of the installation's folder
# sockaddr_un.sun_path holds 108 bytes (Linux), the closing zero and "/.s.PGSQL.5432" included.
_LONGEST_SOCKET_FOLDER = 108 - 1 - len("/.s.PGSQL.5432")


class PostgresError(Exception):
    """The embedded server could not be created or started: one line that says why."""


@dataclass(frozen=True)
class Cluster:
    """The folders of one embedded PostgreSQL: its data and its socket.

    ``system_user`` is the user it runs as, empty for the calling user (never root).
    """

    home: Path
    sockets: Path
    system_user: str

    @property
    def data(self) -> Path:
        """PostgreSQL's data folder."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.home / "log"

    @property
    def lock(self) -> Path:
        """Held while the server is created, started or stopped."""
        return self.home / "lock"

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"


def cluster_for(var: Path, purpose: str = "main") -> Cluster:
    """Return the cluster of the installation that writes into ``var``: the same for root and for
    the system user. Computes paths only: nothing is created or started."""
    if os.geteuid() == 0 or system_user.is_current():
        home = _folder(_known_id(var) or _id_of_path(var)) / purpose
        return Cluster(home, home / "run", system_user.NAME if os.geteuid() == 0 else "")
    home = var.resolve() / "postgres" / purpose
    sockets = home / "run"
    if len(os.fsencode(sockets)) > _LONGEST_SOCKET_FOLDER:
        name = f"kiln-{_id_of_path(var)}-{os.geteuid()}-{purpose}"
        sockets = Path(tempfile.gettempdir()) / name
    return Cluster(home, sockets, "")


def claim(var: Path) -> str:
    """As root, record which database belongs to which folder. Return what to tell people.

    A moved folder keeps its database, even if that was named after its path; a copy of an existing
    folder gets its own.
    """
    database_id, folder = _known_id(var), str(var.resolve())
    if database_id is None:
        fresh = _id_of_path(var)
        holder = _holder(fresh)
        was_removed = holder == folder and not (var / "artifacts").exists()
        if holder not in {"", folder} or was_removed:  # another folder was here once
            fresh = secrets.token_hex(6)
        _note(fresh, var)
        if not was_removed:
            return ""
        return (
            f"{folder} was removed once: the database it had stays in {_folder(_id_of_path(var))}"
        )
    holder = _holder(database_id)
    # The holder still exists, with that database, and is not the same folder.
    is_copy = holder not in {"", folder} and _known_id(Path(holder)) == database_id
    if is_copy and not Path(holder).samefile(var):
        _note(secrets.token_hex(6), var)
        return f"{folder} is a copy of {holder}: it starts with an empty database of its own"
    missing = not _folder(database_id).exists()
    _note(database_id, var)
    return f"the database of {folder} is not on this machine: it starts empty" if missing else ""


def _note(identity: str, var: Path) -> None:
    folder = _folder(identity)
    folder.mkdir(mode=0o755, exist_ok=True)
    _write(folder / _HOLDER, str(var.resolve()))
    _write(var / _ID_FILE, identity)


def _write(file: Path, text: str) -> None:
    """Write atomically: half an id would name another database."""
    if file.is_file() and file.read_text() == text:
        return
    part = file.with_name(f"{file.name}.part")
    with part.open("w") as new:
        new.write(text)
        new.flush()
        os.fsync(new.fileno())
    part.replace(file)


def _known_id(var: Path) -> str | None:
    try:
        text = (var / _ID_FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if _ID.fullmatch(text) else None


def _holder(identity: str) -> str:
    try:
        return (_folder(identity) / _HOLDER).read_text()
    except OSError:
        return ""


def _folder(identity: str) -> Path:
    return system_user.STATE_FOLDER / f"kiln-{identity}"


def _id_of_path(var: Path) -> str:
    return hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
