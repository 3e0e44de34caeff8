"""Our defaults beside Triton's kernels of the same problems, both by the model.

    python -m tests.benchmarks.cycles peers --site DIR [--targets gfx942,gfx950,gfx1100]
        [--families TEXT,…] [--candidates N] [--markdown FILE] [--cache DIR] [--processes N]

DIR is where Triton was installed to (pip install --target DIR triton); it runs in a process of its
own that has only that folder. Of its configurations the fastest by the model counts. Ratios are
rates, ours over Triton's. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.errors import UserError
from scheduler.results.origin import kiln_commit
from scheduler.targets import boards, find
from tests.benchmarks.cycles.peers.compiling import Compiler
from tests.benchmarks.cycles.peers.modelling import Places, row_of
from tests.benchmarks.cycles.peers.problems import PROBLEMS, Problem
from tests.benchmarks.cycles.peers.table import Row, table
from tests.benchmarks.printing import say

TARGETS = ("gfx942", "gfx950", "gfx1100")


@dataclass(frozen=True)
class Task:
    """One problem on one target, for a process."""

    problem: str
    target: str
    site: Path
    cache: Path
    candidates: int


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    chosen = [
        one.name
        for one in PROBLEMS
        if not given.families or any(text in one.name for text in given.families)
    ]
    if not chosen:
        raise SystemExit(f"no problem is named {' or '.join(given.families)}")
    tasks = [
        Task(name, target, given.site.absolute(), given.cache.absolute(), given.candidates)
        for target, name in product(given.targets, chosen)
    ]
    try:
        head = _head(Compiler(given.site, given.cache), given.targets)
        say(head)
        rows: list[Row] = []
        for row in _rows(tasks, given.processes):
            rows.append(row)
            if given.markdown:
                given.markdown.write_text(f"{head}\n\n{table(rows)}\n")
    except UserError as error:
        raise SystemExit(str(error)) from None
    say(f"\n{table(rows)}")
    return 1 if any(row.missed for row in rows) else 0


def modelled(task: Task) -> Row:
    """A row, in whichever process."""
    problem: Problem = next(one for one in PROBLEMS if one.name == task.problem)
    code = CodeCache(task.cache / "code")
    places = Places(
        Compiler(task.site, task.cache / "triton"),
        _toolchain(task.target, task.cache),
        code,
        task.cache / "reports",
    )
    return row_of(problem, find(task.target), places, task.candidates)


@cache
def _toolchain(target: str, folder: Path) -> Toolchain:
    search = Search(Path("/opt/rocm"), "", CodeCache(folder / "code"))
    return pick_toolchain(find_target_toolchains(find(target), search), find(target), "source.hip")


def _rows(tasks: Sequence[Task], processes: int) -> Iterator[Row]:
    with ProcessPoolExecutor(processes) as pool:
        for row in pool.map(modelled, tasks):
            ratio = "no ratio" if row.ratio is None else f"{row.ratio:.2f}"
            say(f"{row.target}, {row.problem}: {ratio} {'; '.join(row.missed)}".rstrip())
            yield row


def _head(compiler: Compiler, targets: Sequence[str]) -> str:
    shown = ", ".join(f"{target} as {boards(target)[0].name}" for target in targets)
    return (
        f"Modelled, never measured: {shown}; Triton {compiler.version} compiled offline; commit"
        f" {kiln_commit() or 'not known'}, {datetime.now(UTC).date()}"
    )


def _list(text: str) -> list[str]:
    return text.split(",")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.cycles peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--site", type=Path, required=True, metavar="DIR", help="Triton's folder")
    parser.add_argument("--targets", type=_list, default=list(TARGETS), metavar="T,…")
    parser.add_argument("--families", type=_list, default=[], metavar="TEXT,…")
    parser.add_argument("--candidates", type=int, default=0, metavar="N", help="of ours, each")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where to write the table")
    parser.add_argument("--cache", type=Path, default=Path("var/peers"), metavar="DIR")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    return parser
