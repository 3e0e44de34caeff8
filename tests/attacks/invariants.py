"""What must hold of a site when all work is done: nothing lost, doubled or left behind."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attacks.site_under_attack import POINTS_A_BATCH, Site

OPEN = "('queued', 'running')"
WORK = ("graph", "build", "tuningtask")
# linux/sched.h
_CLONE_NEWNS, _CLONE_NEWIPC = 0x0002_0000, 0x0800_0000
_RULES = "('rule', 'render')"  # stages of what no kernel can be made of


@dataclass
class Accepted:
    """The rows that the pages said they made, by their keys."""

    graphs: set[int] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    builds: set[int] = field(default_factory=set)
    batches: set[str] = field(default_factory=set)

    def counts(self) -> str:
        """For people."""
        work = f"{len(self.graphs)} imports, {len(self.runs)} runs, {len(self.builds)} builds"
        return f"{work}, {len(self.batches)} batches of results"


@dataclass(frozen=True)
class Surroundings:
    """What is outside the site's folder before it starts."""

    shared: frozenset[str]
    segments: frozenset[str]
    temporary: frozenset[str]

    @classmethod
    def now(cls) -> Surroundings:
        """Shared memory of both kinds that no process uses, and the temporary folder."""
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        columns = [line.split() for line in segments]
        return cls(
            frozenset(path.name for path in Path("/dev/shm").iterdir()) - _mapped(),
            frozenset(one[1] for one in columns if one[6] == "0"),  # nattch
            frozenset(path.name for path in Path("/tmp").iterdir()),
        )


def isolate_shared_memory() -> None:
    """Give this process and its children their own shared memory, so that other processes' is not
    counted. Needs root; without it nothing else may use shared memory during the attack."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS | _CLONE_NEWIPC):
        raise OSError(ctypes.get_errno(), "no namespaces for shared memory and mounts")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "kiln", "/dev/shm"], check=True)


def _mapped() -> set[str]:
    """Names in /dev/shm that some process has in its memory."""
    names: set[str] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                lines = (folder / "maps").read_text().splitlines()
                names |= {line.rpartition("/dev/shm/")[2] for line in lines if "/dev/shm/" in line}
    return names


def open_rows(site: Site) -> int:
    """How much is still to be done."""
    with site.connect() as connection:
        return sum(
            _count(connection, f"codegen_app_{table} WHERE state IN {OPEN}")
            for table in (*WORK, "tuningrun", "candidate")
        ) + _count(connection, "codegen_app_series WHERE unchecked_from IS NOT NULL")


def of_rows(site: Site, accepted: Accepted) -> Iterator[str]:
    """What is wrong with the rows, one line each."""
    with site.connect() as connection:
        for table, keys in (
            ("graph", accepted.graphs),
            ("tuningrun", accepted.runs),
            ("build", accepted.builds),
        ):
            found = dict(connection.execute(f"SELECT id, state FROM codegen_app_{table}"))
            missing = sorted(keys - set(found))
            if missing:
                yield f"{table}: accepted and not there: {missing}"
            undone = {key: found[key] for key in keys & set(found) if found[key] != "done"}
            if undone:
                yield f"{table}: accepted and not done: {undone}"
        for table in (*WORK, "candidate"):
            # What the rules, or a spent budget, rule out is no failure, nor is a build of a run
            # that is over. What was asked for by hand is among the accepted, which must be done.
            lost = connection.execute(
                f"SELECT state, left(reason, 120), count(*) FROM codegen_app_{table}"
                " WHERE state NOT IN ('queued', 'running', 'done') AND NOT (state = 'cancelled'"
                " AND (reason LIKE 'the budget of%' OR reason LIKE 'the exploration time was%'"
                " OR reason = 'nothing waits for it any more'))"
                f" AND stage NOT IN {_RULES} GROUP BY 1, 2"
            ).fetchall()
            yield from (f"{table}: {number} {state}: {why}" for state, why, number in lost)
        yield from _doubled(connection)
        yield from _dangling(connection)
        yield from _of_batches(connection, accepted.batches)


def of_files(site: Site) -> Iterator[str]:
    """Files without rows, rows that something refers to without files, and what unfinished work
    left, once it stopped. A row is there before its file: one that nothing refers to is swept."""
    with site.connect() as connection:
        rows = {path for (path,) in connection.execute("SELECT path FROM codegen_app_artifact")}
        used = _used_artifacts(connection)
    folder = site.var / "artifacts"
    kept = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    yield from _some("artifacts without a row", kept - rows)
    yield from _some("artifacts without a file", used - kept)
    for name in ("tmp", "code-cache/tmp", "fetched/tmp"):
        left = site.var / name
        if left.is_dir():
            yield from _some(f"left in {name}", (path.name for path in left.iterdir()))
    halves = [path for path in site.var.rglob("*") if path.suffix in {".part", ".new"}]
    yield from _some("half-written files", (str(path.relative_to(site.var)) for path in halves))


def _used_artifacts(connection: Any) -> set[str]:
    """Paths of the artifacts that some row refers to."""
    references = connection.execute(
        "SELECT conrelid::regclass::text, attname FROM pg_constraint JOIN pg_attribute"
        " ON attrelid = conrelid AND attnum = ANY(conkey)"
        " WHERE contype = 'f' AND confrelid = 'codegen_app_artifact'::regclass"
    ).fetchall()
    any_of_them = " OR ".join(
        f"EXISTS (SELECT FROM {table} WHERE {table}.{column} = a.id)"
        for table, column in references
    )
    rows = connection.execute(f"SELECT path FROM codegen_app_artifact AS a WHERE {any_of_them}")
    return {path for (path,) in rows}


def of_surroundings(before: Surroundings, site: Site) -> Iterator[str]:
    """Processes, shared memory and folders that outlived the site; it is stopped."""
    now = Surroundings.now()
    yield from _some("processes", map(str, site.all_processes()))
    yield from _some("shared memory", now.shared - before.shared)
    yield from _some("shared segments", now.segments - before.segments)
    owner = site.var.stat().st_uid
    new = (Path("/tmp", name) for name in now.temporary - before.temporary)
    ours = (path.name for path in new if path != site.var and _owned(path, owner))
    yield from _some("in the temporary folder", ours)


def _owned(path: Path, uid: int) -> bool:
    try:
        return path.lstat().st_uid == uid
    except FileNotFoundError:
        return False


def _of_batches(connection: Any, accepted: set[str]) -> Iterator[str]:
    """Each is there once with all of its points, and series know how many they have."""
    counts = dict(
        connection.execute(
            "SELECT key, count(*) FROM codegen_app_batch AS b LEFT JOIN codegen_app_datum AS d"
            " ON d.batch_id = b.id WHERE key LIKE 'attack-%' GROUP BY key"
        )
    )
    yield from _some("batches accepted and not there", accepted - counts.keys())
    parts = (key for key, number in counts.items() if number != POINTS_A_BATCH)
    yield from _some("batches with more or fewer points than were sent", parts)
    miscounted = _count(
        connection,
        "codegen_app_series AS s WHERE points <>"
        " (SELECT count(*) FROM codegen_app_datum AS d WHERE d.series_id = s.id)",
    )
    if miscounted:
        yield f"{miscounted} series that miscount their points"


def _doubled(connection: Any) -> Iterator[str]:
    for what, table, columns in (
        ("graphs", "graph", "digest"),
        ("kernels", "generatedkernel", "source_digest"),
        ("problems", "problem", "digest"),
        ("artifacts", "artifact", "digest"),
        (
            "builds",
            "build",
            "kernel_id, target, flags, toolchain, toolchain_version, toolchain_digest",
        ),
        ("nodes", "templatenode", "graph_id, name"),
        ("tasks", "tuningtask", "run_id, problem_id"),
        ("candidates", "candidate", "task_id, kernel_id, config"),
        ("results of a candidate", "candidate", "result_id"),
    ):
        twice = _count(
            connection,
            f"(SELECT {columns} FROM codegen_app_{table}"
            f" WHERE ({columns.split(',')[0]}) IS NOT NULL"
            f" GROUP BY {columns} HAVING count(*) > 1) AS twice",
        )
        if twice:
            yield f"{twice} doubled {what}"
    chosen = _count(
        connection,
        "(SELECT task_id FROM codegen_app_candidate WHERE chosen GROUP BY 1"
        " HAVING count(*) > 1) AS twice",
    )
    if chosen:
        yield f"{chosen} problems with two chosen candidates"


def _dangling(connection: Any) -> Iterator[str]:
    results = _count(
        connection,
        "codegen_app_benchmarkresult AS r WHERE NOT EXISTS"
        " (SELECT FROM codegen_app_candidate AS c WHERE c.result_id = r.id)",
    )
    if results:
        yield f"{results} results that belong to no candidate"
    undecided = _count(
        connection,
        "codegen_app_tuningtask AS t WHERE state = 'done' AND NOT EXISTS"
        " (SELECT FROM codegen_app_candidate AS c WHERE c.task_id = t.id AND c.chosen)"
        # Where the kills used up the budget nothing was measured: there is no choice.
        " AND ((SELECT budget_s FROM codegen_app_tuningrun AS r WHERE r.id = t.run_id) IS NULL"
        " OR EXISTS (SELECT FROM codegen_app_candidate AS c"
        " WHERE c.task_id = t.id AND c.result_id IS NOT NULL))",
    )
    if undecided:
        yield f"{undecided} problems that are done and without a choice"
    empty = _count(
        connection,
        "codegen_app_tuningrun AS r WHERE state = 'done' AND NOT EXISTS"
        " (SELECT FROM codegen_app_tuningtask AS t WHERE t.run_id = r.id)",
    )
    if empty:
        yield f"{empty} runs that are done and empty"


def _count(connection: Any, rest: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {rest}").fetchone()
    assert row is not None
    return int(row[0])


def _some(what: str, names: Iterable[str]) -> Iterator[str]:
    found = sorted(names)
    if found:
        yield f"{len(found)} {what}: {', '.join(found[:5])}"
