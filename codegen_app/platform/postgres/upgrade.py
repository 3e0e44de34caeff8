"""Upgrades to the next major version of PostgreSQL: the new programs dump the databases and restore
them into a new data folder. The old data stay beside it. A killed upgrade starts again, or is
finished."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codegen_app.platform.postgres.cluster import Cluster
from codegen_app.platform.postgres.programs import run

log = logging.getLogger(__name__)


@contextmanager
def dump_folder(cluster: Cluster, version: int, newest: int) -> Iterator[Path]:
    """Yield the folder for an upgrade's dumps, removed afterwards; reports the upgrade."""
    dumps = cluster.home / "dumps"
    shutil.rmtree(dumps, ignore_errors=True)
    dumps.mkdir(mode=0o700)
    if cluster.system_user:
        shutil.chown(dumps, cluster.system_user, cluster.system_user)
    try:
        yield dumps
    finally:
        shutil.rmtree(dumps, ignore_errors=True)
    log.warning(
        "the database was brought from PostgreSQL %s to %s; the data of before stay in %s",
        *(version, newest, _previous_folder(cluster)),
    )


def dump_databases(cluster: Cluster, programs: Path, dumps: Path) -> None:
    """Dump the roles and every database of the running server; a database grants rights to
    roles."""
    roles = dumps / "0-roles.sql"
    run(
        cluster,
        (programs / "pg_dumpall", *_server_arguments(cluster), "--roles-only", "-f", roles),
        "the roles of before could not be dumped",
    )
    own = "CREATE ROLE postgres;\n"  # initdb creates it
    roles.write_text(roles.read_text().replace(own, "", 1))
    of_people = "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'"
    names = run(
        cluster,
        (programs / "psql", *_server_arguments(cluster), "-XAt", "-d", "postgres", "-c", of_people),
        "the databases of before could not be listed",
    )
    for number, name in enumerate(names.splitlines()):
        run(
            cluster,
            (
                *(programs / "pg_dump", *_server_arguments(cluster), "-C"),
                *("-f", dumps / f"1-database-{number}.sql", "-d", f"dbname='{name}'"),
            ),
            f"database {name} could not be dumped",
        )


def restore_databases(cluster: Cluster, programs: Path, dumps: Path) -> None:
    """Restore the dumps into the running server."""
    for file in sorted(dumps.iterdir()):
        run(
            cluster,
            (
                *(programs / "psql", *_server_arguments(cluster), "-Xq", "-v", "ON_ERROR_STOP=1"),
                *("-d", "postgres", "-f", file),
            ),
            "a database of before could not be read",
        )


def swap_data(cluster: Cluster, fresh: Path) -> None:
    """Replace the old data folder by the new one."""
    fresh.rename(_upgraded_folder(cluster))
    finish_swap(cluster)


def finish_swap(cluster: Cluster) -> None:
    """Complete a ``swap_data`` that was killed."""
    if not _upgraded_folder(cluster).exists():
        return
    if (cluster.data / "PG_VERSION").exists():
        shutil.rmtree(_previous_folder(cluster), ignore_errors=True)
        cluster.data.rename(_previous_folder(cluster))
    elif cluster.data.exists():
        cluster.data.rmdir()
    _upgraded_folder(cluster).rename(cluster.data)


def _upgraded_folder(cluster: Cluster) -> Path:
    return cluster.home / "data.upgraded"


def _previous_folder(cluster: Cluster) -> Path:
    return cluster.home / "data.before"


def _server_arguments(cluster: Cluster) -> tuple[object, ...]:
    return ("-h", cluster.sockets, "-U", "postgres")
