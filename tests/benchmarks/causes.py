"""How many changes of a generated history with known causes are labelled right.

    python -m tests.benchmarks.causes [--series N] [--seed S] [--seeds K] [--wrong N]

Every injected change is shown as a detector would show it (the step's best place, a limited number
of points on either side, other commits in between), and what ``scheduler.track.causes`` says is
counted against what was injected: a table of injected against said, one line for each kind of
change, and one for mixed cases, where the right answer is that it cannot be said, and between which
causes. ``--wrong`` shows that many of those that were labelled wrong.

The goal that was set: at least 95% right. Exits with 1 below that, or where code is named although
the environment differs or the code objects are equal.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.track.causes import Explanation, explain
from scheduler.track.evidence import Cause
from scheduler.track.generated import GeneratedSeries, Injection, generate_history, sides_of
from scheduler.track.sides import Point, Side
from tests.benchmarks.printing import say

GOAL = 0.95


@dataclass(frozen=True)
class Case:
    """One change: what was injected, and what was said of it."""

    series: GeneratedSeries
    injected: Injection
    before: Side
    after: Side
    explanation: Explanation

    @property
    def right(self) -> bool:
        """Same cause, and where it cannot be said, between exactly the causes that were there."""
        return self.explanation.cause is self.injected.cause and set(
            self.explanation.candidates
        ) == set(self.injected.candidates)

    @property
    def mixed(self) -> bool:
        return self.injected.cause is Cause.UNKNOWN

    @property
    def kind(self) -> str:
        return " + ".join(self.injected.kinds)

    @property
    def breaks_a_promise(self) -> bool:
        """Code named although one and the same code object was measured on both sides, or although
        no point of one side ran in the other's environment."""
        named = {Cause.CODE, Cause.TUNING, Cause.COMPILER} & {self.explanation.cause}
        codes = [{point.code.digest for point in side.near} for side in self.sides]
        drivers = [{_machine(point) for point in side.near} for side in self.sides]
        return bool(named) and (
            (codes[0] == codes[1] and len(codes[0]) == 1) or not drivers[0] & drivers[1]
        )

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.before, self.after


def _machine(point: Point) -> tuple[str, str]:
    return point.environment.driver, point.environment.unit


def cases(series: int, seed: int) -> Iterator[Case]:
    """Every change of a history."""
    for one in generate_history(series, seed):
        for injected in one.injected:
            before, after = sides_of(one, injected)
            yield Case(one, injected, before, after, explain(before, after))


def table(found: list[Case]) -> Iterator[str]:
    """Injected causes down, said ones across."""
    counts = Counter((case.injected.cause, case.explanation.cause) for case in found)
    yield f"{'injected':<16}" + "".join(f"{cause:>16}" for cause in Cause)
    for row in Cause:
        yield f"{row:<16}" + "".join(f"{counts[row, column]:>16,}" for column in Cause)


def shares(found: list[Case]) -> Iterator[str]:
    """The share labelled right, kind by kind."""
    yield f"{'what was injected':<72} {'changes':>8} {'right':>7}"
    for kind in sorted({case.kind for case in found}, key=lambda kind: (kind.count("+"), kind)):
        yield _share(kind, [case for case in found if case.kind == kind])
    yield _share("mixed cases", [case for case in found if case.mixed])
    yield _share("all others", [case for case in found if not case.mixed])
    yield _share("all", found)


def _share(title: str, found: list[Case]) -> str:
    right = sum(case.right for case in found)
    return f"{title:<72} {len(found):>8,} {right / max(1, len(found)):>7.1%}"


def main() -> int:
    """Print the tables; the exit status is 0 where the goal is reached and the promises kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--series", type=int, default=150, help="of each history (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first (%(default)s)")
    parser.add_argument("--seeds", type=int, default=4, help="histories (%(default)s)")
    parser.add_argument("--wrong", type=int, default=0, help="of those to be shown")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    found = [case for seed in seeds for case in cases(arguments.series, seed)]
    say(
        f"generated: {arguments.seeds} histories of {arguments.series} series, from seed {seeds[0]}"
    )
    for line in (*table(found), "", *shares(found)):
        say(line)
    for case in [case for case in found if not case.right][: arguments.wrong]:
        said, was = case.explanation, case.injected
        say(f"\n{case.series.name}, point {was.index}: {case.kind}, {was.ratio:.3f}")
        say(f"  said {said.cause} by {said.rule!r}, to be said {was.cause} {was.candidates}")
        for reason in said.reasons:
            say(f"  {reason}")
    broken = sum(case.breaks_a_promise for case in found)
    say(f"code named although code objects are equal or environments differ: {broken}")
    return int(broken > 0 or sum(case.right for case in found) < GOAL * len(found))


if __name__ == "__main__":
    raise SystemExit(main())
