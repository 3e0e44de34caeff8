"""Every candidate of every stratum of every template, built and compared with the reference.

    python -m tests.benchmarks.strata [--device cuda:0] [--workers N] [--only TEXT]

A stratum is a template, a layout of its operands, a type, and sizes that are fixed or not
(tests/support/strata.py). A candidate of fixed sizes is checked there, one of any rows at 296, 1
and 37 of them. Prints a line for each stratum, and for each candidate that is wrong, fails or is
not built: its configuration and what happened. Candidates of another backend that this machine has
no compiler for are counted with the reason. Exits with 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.measure import Bench, Limits, check_candidate
from scheduler.benchmark.verification import device_target
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Toolchain
from scheduler.build.recipe import library_of
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import RenderedKernel
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.codegen.scheduling import scheduling_for
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.bindings import Bindings, format_bindings, hint_bindings
from scheduler.runtime.device import DeviceError
from scheduler.targets import Target, find
from scheduler.tuning.evaluator import edge_bindings
from tests.benchmarks.printing import say
from tests.support.models_as_kernels import combined
from tests.support.strata import Stratum, strata

CANDIDATES = 12  # of one piece of work
NO_COMPILER = "no compiler"
LIMITS = Limits(load_s=120.0, check_s=120.0)


@dataclass(frozen=True)
class Piece:
    """Some candidates of a stratum: those from ``first`` on."""

    title: str
    first: int
    device: str
    target: str
    cache: Path


@dataclass
class Outcome:
    """What became of candidates."""

    right: int = 0
    wrong: int = 0
    worst: float = 0.0  # error / bound of those that are right
    lines: list[str] = field(default_factory=list)
    unbuilt: Counter[str] = field(default_factory=Counter)  # for want of a compiler, by reason

    def add(self, other: Outcome) -> None:
        self.right, self.wrong = self.right + other.right, self.wrong + other.wrong
        self.worst = max(self.worst, other.worst)
        self.lines += other.lines
        self.unbuilt += other.unbuilt


def main() -> int:
    """Check them all; 1 when a candidate was wrong."""
    options = _options()
    start = time.monotonic()
    wanted = {one.title: one for one in strata() if options.only in one.title}
    counts = {title: _counted(one, options.target) for title, one in wanted.items()}
    say(f"{options.device}, target {options.target}, {options.workers} processes")
    total = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        pieces = [
            Piece(title, first, options.device, options.target, Path(folder))
            for title, (serving, _) in counts.items()
            for first in range(0, serving, CANDIDATES)
        ]
        for title, outcome in _by_stratum(pieces, options.workers):
            serving, turned_down = counts[title]
            here = f"{serving} candidates"
            if unbuilt := outcome.unbuilt.total():
                here += f" ({unbuilt} of them not built here)"
            say(
                f"{title}: {here}, {outcome.wrong} wrong, worst error {outcome.worst:.3f}"
                f" of the bound; {turned_down} configurations turned down"
            )
            for line in outcome.lines:
                say(f"  {line}")
            total.add(outcome)
    for reason, count in total.unbuilt.items():
        say(f"{count} candidates were not built here: {reason}")
    templates = ", ".join(sorted({_template(one, options.target) for one in wanted.values()}))
    say(
        f"{len(wanted)} strata of {templates}: {total.right + total.wrong} candidates,"
        f" {total.wrong} wrong; {time.monotonic() - start:.0f} s"
    )
    return 1 if total.wrong or not wanted else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or cpu for the emulation")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="strata with that in their name")
    options = parser.parse_args()
    try:
        options.target = device_target(options.device)
    except (DeviceError, UserError) as error:
        parser.error(str(error))
    return options


def _counted(one: Stratum, target: str) -> tuple[int, int]:
    """How many configurations serve, and how many are turned down; each has its reason."""
    (node,) = one.plan.nodes
    found = scheduling_for(one.plan, (find(target),)).candidates(node)
    assert all(item.rejected.reason for item in found.rejected), one.title
    assert found.callers, f"{one.title}: no candidate"
    return len(found.callers), len(found.rejected)


def _template(one: Stratum, target: str) -> str:
    return scheduling_for(one.plan, (find(target),)).template(one.plan.nodes[0]).name


def _by_stratum(pieces: list[Piece], workers: int) -> Iterator[tuple[str, Outcome]]:
    """Each stratum when its last piece is done."""
    left = Counter(piece.title for piece in pieces)
    outcomes = {piece.title: Outcome() for piece in pieces}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(work, piece): piece.title for piece in pieces}
        for done in as_completed(running):
            title = running[done]
            outcomes[title].add(done.result())
            left[title] -= 1
            if not left[title]:
                yield title, outcomes[title]


def work(piece: Piece) -> Outcome:
    """Build the candidates of a piece and check each at every size."""
    one, target = _stratum(piece.title), find(piece.target)
    (node,) = one.plan.nodes
    found = scheduling_for(one.plan, (target,)).candidates(node)
    outcome, built = Outcome(), list[tuple[TemplateCaller, Path]]()
    callers = found.callers[piece.first : piece.first + CANDIDATES]
    for caller, made in _built(callers, target, piece.cache):
        if isinstance(made, Rejected) and made.reason == NO_COMPILER:
            outcome.unbuilt[made.detail] += 1
        elif isinstance(made, Rejected):
            outcome.wrong += 1
            outcome.lines.append(f"{caller.description}: {made.reason} {made.detail[-500:]}")
        else:
            built.append((caller, made))
    wrong: set[str] = set()
    symbols = one.plan.lowered.graph.symbols
    sizes = {format_bindings(at): at for at in (hint_bindings(symbols), *edge_bindings(symbols))}
    with Bench(piece.device, LIMITS) as bench:
        for text, bindings in sizes.items():
            for caller, said in _checked(one, built, target, bench, bindings, outcome):
                wrong.add(caller.name)
                outcome.lines.append(f"{caller.description} {text}: {said}")
    outcome.wrong += len(wrong)
    outcome.right += len(built) - len(wrong)
    return outcome


@cache
def _stratum(title: str) -> Stratum:
    return next(one for one in strata() if one.title == title)


@cache
def _compiler(target: Target, source_file: str, root: Path) -> Toolchain | Rejected:
    search = Search(path=os.environ.get("PATH", ""), cache=CodeCache(root))
    try:
        return pick_toolchain(find_target_toolchains(target, search), target, source_file)
    except UserError as error:
        return Rejected(Stage.COMPILE, NO_COMPILER, str(error))


def _built(
    callers: Sequence[TemplateCaller], target: Target, root: Path
) -> Iterator[tuple[TemplateCaller, Path | Rejected]]:
    """The library that each is in: all C++ in one, or each its own where one does not compile."""
    plain = {c.name: c.kernel for c in callers if c.kernel.source_file == HIP_SOURCE}
    together: Path | Rejected | None = None
    if plain:
        source, first = combined(list(plain.values())), next(iter(plain.values()))
        together = _library(replace(first, source=source), target, root)
    for caller in callers:
        if caller.name in plain and isinstance(together, Path):
            yield caller, together
        else:
            yield caller, _library(caller.kernel, target, root)


def _library(kernel: RenderedKernel, target: Target, root: Path) -> Path | Rejected:
    compiler = _compiler(target, kernel.source_file, root)
    if isinstance(compiler, Rejected):
        return compiler
    cache = CodeCache(root)
    made = build(
        kernel.source, kernel.symbol, target, compiler, cache, source_file=kernel.source_file
    )
    return made if isinstance(made, Rejected) else library_of(made)


def _checked(
    one: Stratum,
    built: list[tuple[TemplateCaller, Path]],
    target: Target,
    bench: Bench,
    bindings: Bindings,
    outcome: Outcome,
) -> Iterator[tuple[TemplateCaller, str]]:
    """Those that are wrong at these sizes, and how."""
    case = make_case(one.plan.nodes[0], one.plan.lowered, bindings, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        case.save(Path(folder))
        bench.use(Path(folder))
        for caller, library in built:
            request = caller.benchmark_request(target.name, bindings)
            found = check_candidate(
                bench, BuiltCandidate(caller.name, str(library), request), LIMITS
            )
            if isinstance(found, Rejected):
                yield caller, f"{found.stage}: {found.reason} {found.detail[-500:]}"
            elif not found.passed:
                yield caller, f"{found.detail} (error {found.max_error:.3g}, {found.bound:.3g} due)"
            else:
                outcome.worst = max(outcome.worst, found.ratio)


if __name__ == "__main__":
    sys.exit(main())
