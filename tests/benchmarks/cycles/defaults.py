"""How far the choice without any measurement is from the best candidate, by the model.

    python -m tests.benchmarks.cycles defaults [--shapes FILE] [--target gfx942] [--only TEXT,…]
        [--candidates N] [--markdown FILE] [--cache DIR] [--processes N]

Of each shape the default is modelled, and N other candidates: of matrix products two thirds are
those that the default's own estimate finds fastest, the rest an even sample of all; of other
kernels all are. The best of them, the default among them, is what its time is compared with. Exits
with 1 where fewer than all are within a tenth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.errors import UserError
from scheduler.results.origin import kiln_commit
from scheduler.targets import boards, find
from tests.benchmarks.cycles.candidates import choosers
from tests.benchmarks.cycles.shapes import FILE, Shape, read
from tests.benchmarks.printing import say
from tests.support.families import modelled

WITHIN = 1.1  # of the best candidate's time


@dataclass(frozen=True)
class Chosen:
    """A shape's default beside the best that was modelled: ``tried`` candidates, the default among
    them; ``best`` says which it is. ``error`` says why there is no kernel."""

    shape: Shape
    default_us: float = 0.0
    best_us: float = 0.0
    best: str = ""
    tried: int = 0
    error: str = ""

    @property
    def ratio(self) -> float:
        """1 where the default is the best."""
        return self.default_us / self.best_us if self.best_us else float("inf")

    @property
    def good(self) -> bool:
        """Within a tenth of the best."""
        return self.ratio <= WITHIN


def chosen(shape: Shape, target: str, folder: Path, most: int) -> Chosen:
    """The default and ``most`` other candidates, modelled."""
    compiled_for, cache = find(target), CodeCache(folder / "code")
    search = Search(Path("/opt/rocm"), "", cache)
    toolchain = pick_toolchain(
        find_target_toolchains(compiled_for, search), compiled_for, "source.hip"
    )
    plan = shape.plan()
    times: dict[str, float] = {}
    errors = []
    for title, choose in (("the default", None), *choosers(plan, compiled_for, most)):
        try:
            kernels = modelled(plan, compiled_for, toolchain, cache, choose)
        except UserError as error:
            errors.append(f"{title}: {' '.join(str(error).split())}"[:200])
            continue
        times[title] = sum(one.report.time_us.mid for one in kernels)
    if "the default" not in times:
        return Chosen(shape, error=errors[0])
    best = min(times, key=lambda title: times[title])
    return Chosen(shape, times["the default"], times[best], best, len(times), "; ".join(errors))


def table(rows: Sequence[Chosen]) -> str:
    """A line for each shape, and the share that is within a tenth."""
    lines = [("shape", "of", "default µs", "best µs", "default / best", "tried", "best candidate")]
    for row in rows:
        figures = (f"{row.default_us:.1f}", f"{row.best_us:.1f}", f"{row.ratio:.2f}")
        said = figures if row.best_us else ("none", "", "")
        lines.append((row.shape.name, row.shape.of, *said, str(row.tried), row.best))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        f"| {' | '.join(text.ljust(width) for text, width in zip(line, widths, strict=True))} |"
        for line in lines
    ]
    shown.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    good = sum(row.good for row in rows)
    notes = [f"- {row.shape.name}: {row.error}" for row in rows if row.error]
    return "\n".join([*shown, "", f"- within a tenth of the best: {good} of {len(rows)}", *notes])


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    try:
        shapes = [
            one
            for one in read(given.shapes)
            if not given.only or any(text in f"{one.name} {one.of}" for text in given.only)
        ]
    except UserError as error:
        raise SystemExit(str(error)) from None
    head = (
        f"Modelled, never measured: {given.target} as {boards(given.target)[0].name}; the default"
        f" and at most {given.candidates} other candidates; commit {kiln_commit() or 'not known'},"
        f" {datetime.now(UTC).date()}"
    )
    say(head)
    rows = []
    for row in _rows(shapes, given):
        rows.append(row)
        say(f"{row.shape.name}: {row.ratio:.2f} ({row.best})")
        if given.markdown:
            given.markdown.write_text(f"{head}\n\n{table(rows)}\n")
    say(f"\n{table(rows)}")
    return 0 if all(row.good for row in rows) else 1


def _rows(shapes: Sequence[Shape], given: argparse.Namespace) -> Iterator[Chosen]:
    count = len(shapes)
    with ProcessPoolExecutor(given.processes) as pool:
        yield from pool.map(
            chosen,
            *(shapes, [given.target] * count, [given.cache.absolute()] * count),
            [given.candidates] * count,
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.cycles defaults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shapes", type=Path, default=FILE, metavar="FILE")
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="TEXT,…")
    parser.add_argument("--candidates", type=int, default=8, metavar="N", help="(%(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where to write the table")
    parser.add_argument("--cache", type=Path, default=Path("var/defaults"), metavar="DIR")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    return parser
