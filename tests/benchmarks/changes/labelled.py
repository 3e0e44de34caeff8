"""Whether labelled changes are found, in series that no parameter was chosen by.

    python -m tests.benchmarks.changes.labelled [FILE …] [--series N] [--seed S] [--detector NAME …]

Without a FILE the shapes of ``shapes.py``. A FILE is JSON: a list of series, each with its
``values`` and the indices of the first values of new levels, ``changes``; ``name`` and
``revisions`` where there are some. A change is found where one is named within five values of it;
each is found once, and what is named beside them is a false alarm. F1 is twice the changes found as
a part of those that there are and those that were named.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.changes.shapes import SHAPES, Labelled
from tests.benchmarks.printing import say

SAME = 5


@dataclass
class Agreement:
    found: int = 0
    named: int = 0
    labelled: int = 0

    @property
    def f1(self) -> float:
        return 2 * self.found / max(1, self.named + self.labelled)

    def add(self, named: list[int], labelled: tuple[int, ...]) -> None:
        left = list(named)
        for change in labelled:
            near = min(left, key=lambda at: abs(at - change), default=None)
            if near is not None and abs(near - change) <= SAME:
                left.remove(near)
                self.found += 1
        self.named += len(named)
        self.labelled += len(labelled)


def shaped(series: int, seed: int) -> Iterator[tuple[str, Labelled]]:
    """As many series of each shape, with its name."""
    for shape in SHAPES:
        rng = np.random.default_rng([seed, *shape.__name__.encode()])
        for _ in range(series):
            yield shape.__name__, shape(rng)


def recorded(path: Path) -> Iterator[tuple[str, Labelled]]:
    for row in json.loads(path.read_text()):
        values = np.asarray(row["values"], dtype=np.float64)
        revisions = tuple(map(str, row.get("revisions", ())))
        yield row.get("name", path.stem), Labelled(values, tuple(row["changes"]), revisions)


def main() -> int:
    from tests.benchmarks.changes.detectors import DETECTORS
    from tests.benchmarks.changes.scoring import LEAST, alarms

    options = _options(tuple(DETECTORS))
    cases = [case for path in options.files for case in recorded(path)]
    cases = cases or list(shaped(options.series, options.seed))
    names = dict.fromkeys(name for name, _ in cases)
    for detector in options.detector:
        by_name = {name: Agreement() for name in names}
        total = Agreement()
        for name, case in cases:
            revisions = case.revisions or tuple(map(str, range(case.values.size)))
            raised = alarms(DETECTORS[detector], case.values, revisions, LEAST)
            for agreement in (by_name[name], total):
                agreement.add([index for _, index in raised], case.changes)
        for name, agreement in by_name.items():
            _say(detector, name, agreement)
        _say(detector, "all", total)
    return 0


def _say(detector: str, name: str, agreement: Agreement) -> None:
    false = agreement.named - agreement.found
    f1 = f", F1 {agreement.f1:.2f}" if agreement.labelled else ""
    say(
        f"{detector:12} {name:20} found {agreement.found:3} of {agreement.labelled:3}, "
        f"{false:3} false alarms{f1}"
    )


def _options(detectors: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.changes.labelled")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--series", type=int, default=10, help="of each shape")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--detector", nargs="+", choices=detectors, default=list(detectors))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
