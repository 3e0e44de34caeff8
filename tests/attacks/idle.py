"""What grows while the demo has nothing to do: ``python -m tests.attacks.idle --minutes 60``.

Starts a demo in a folder of its own, waits until all its work is done, and measures files, rows,
database, write-ahead log, processes and memory at the beginning and at the end. Before each look
the database does VACUUM and CHECKPOINT, so that what is reusable or recycled is not taken for
growth. Exits with 1 where files, rows or processes grew.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path

import psycopg
from psycopg import sql

from codegen_app.platform import postgres
from codegen_app.site.demo.processes import descendants

ROOT = Path(__file__).resolve().parents[2]
OPEN = "('queued', 'running')"
WORK = ("codegen_app_graph", "codegen_app_build", "codegen_app_tuningtask", "codegen_app_tuningrun")


@dataclass(frozen=True)
class Look:
    """One look: numbers by name. ``memory`` (KiB, each page counted once) is not held to 0."""

    files: dict[str, int]
    rows: dict[str, int]
    database: dict[str, int]
    processes: dict[str, int]
    memory: dict[str, int]


@contextmanager
def demo(var: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo whose work is done, stopped and removed afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    with (var.parent / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(port)],
            cwd=ROOT,
            env={**environment, "KILN_VAR": str(var)},
            stdout=said,
            stderr=said,
            process_group=0,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        postgres.remove(var)


def settle(process: subprocess.Popen[bytes], var: Path, seconds: float) -> None:
    """Wait until nothing is left to do, and so long beyond that."""
    while not is_done(postgres.cluster_for(var)):
        if process.poll() is not None:
            sys.exit("the demo ended by itself")
        time.sleep(2)
    time.sleep(seconds)


def is_done(cluster: postgres.Cluster) -> bool:
    """Whether there was work, and all of it is over."""
    try:
        with psycopg.connect(cluster.url("kiln")) as connection:
            counts = [
                connection.execute(
                    f"SELECT count(*), count(*) FILTER (WHERE state IN {OPEN}) FROM {table}"
                ).fetchone()
                for table in WORK
            ]
    except psycopg.Error:
        return False  # it is being made
    return all(all_ and not open_ for all_, open_ in filter(None, counts))


def look(process: subprocess.Popen[bytes], var: Path) -> Look:
    """Measure all of it."""
    cluster = postgres.cluster_for(var)
    with psycopg.connect(cluster.url("kiln"), autocommit=True) as connection:
        connection.execute("VACUUM")
        connection.execute("CHECKPOINT")
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = {
            name: int((connection.execute(count_of(name)).fetchone() or [0])[0])
            for (name,) in sorted(names.fetchall())
        }
        size = connection.execute("SELECT pg_database_size('kiln')").fetchone()
    pids = [process.pid, *descendants(process.pid)]
    files = {
        f"{var.name}/{entry.name}": size_of(entry)
        for entry in sorted(var.iterdir())
        if entry != cluster.home.parent and entry not in cluster.home.parents
    }
    files |= {f"{var.name}/log/{log.name}": size_of(log) for log in sorted((var / "log").iterdir())}
    return Look(
        files=files | {"database's log": size_of(cluster.log)},
        rows=rows,
        database={
            "pg_database_size": int(size[0]) if size else 0,
            "pg_wal": size_of(cluster.data / "pg_wal"),
        },
        processes={
            "processes": len(pids),
            "threads": sum(len(list(Path("/proc", str(pid), "task").iterdir())) for pid in pids),
            "open files": sum(len(list(Path("/proc", str(pid), "fd").iterdir())) for pid in pids),
        },
        memory=dict(map(memory_of, pids)),
    )


def count_of(table: str) -> sql.Composed:
    return sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def memory_of(pid: int) -> tuple[str, int]:
    """A process's name and its own written memory in KiB: its share of what others map as well
    (PSS) grows when one of those ends."""
    words = Path("/proc", str(pid), "cmdline").read_bytes().decode().split("\0")
    hosts = [after for before, after in pairwise(words) if "host" in before]
    name = next((word for word in words if word in {"demo", "gunicorn", "celery"}), words[0])
    rollup = Path("/proc", str(pid), "smaps_rollup").read_text()
    own = ("Private_Dirty:", "Swap:")
    kib = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(own))
    return f"{name} {hosts[0] if name == 'celery' and hosts else pid}", kib


def report(before: Look, after: Look, hours: float) -> bool:
    """Print what changed; whether anything grew that must not."""
    grew = False
    say(f"after {hours * 60:.0f} minutes")
    say(f"{'':44} {'beginning':>14} {'end':>14} {'an hour':>12}")
    for group in (field.name for field in fields(Look)):
        old, new = getattr(before, group), getattr(after, group)
        for name in sorted(old.keys() | new.keys()):
            a, b = old.get(name, 0), new.get(name, 0)
            if a != b or group != "rows":
                say(f"{group + ': ' + name:44} {a:14,} {b:14,} {(b - a) / hours:+12,.0f}")
            grew |= b > a and group != "memory"
    same = sum(before.rows[name] == after.rows.get(name) for name in before.rows)
    say(f"rows of {same} of {len(before.rows)} tables are as many as before")
    return grew


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--looks", type=int, default=1, help="reports, evenly spaced")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds after the last work")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kiln-idle-"))
    home.chmod(0o755)  # as a checkout is: the demo of root works as another user
    var = home / "var"
    var.mkdir()
    try:
        with demo(var) as process:
            settle(process, var, options.settle)
            before = look(process, var)
            began = time.monotonic()
            for _ in range(options.looks):
                time.sleep(options.minutes * 60 / options.looks)
                after = look(process, var)
                grew = report(before, after, (time.monotonic() - began) / 3600)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sys.exit("something grew" if grew else 0)


if __name__ == "__main__":
    main()
