"""What a run says: a file of its verdicts, and tables by op and by type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.opinfo.exceptions import exempt, needless
from tests.benchmarks.opinfo.judging import Verdict

GOAL = 0.995


@dataclass(frozen=True)
class Counts:
    """Uses that torch exports: all of them, those that are right, those known not to be."""

    judged: int
    passed: int
    exempt: int
    not_exported: int

    @property
    def rate(self) -> float:
        """Of those that are no exception, how many are right."""
        due = self.judged - self.exempt
        return self.passed / due if due else 1.0

    def __str__(self) -> str:
        return (
            f"{self.passed} of {self.judged} right ({100 * self.rate:.2f}% without {self.exempt}"
            f" exceptions), {self.not_exported} not exported by torch"
        )


def counts(verdicts: Iterable[Verdict]) -> Counts:
    judged = passed = known = not_exported = 0
    for verdict in verdicts:
        if verdict.not_exported:
            not_exported += 1
            continue
        judged += 1
        passed += not verdict.failed
        known += bool(verdict.failed) and exempt(verdict) is not None
    return Counts(judged, passed, known, not_exported)


def faults(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that fail and are no exception."""
    return [v for v in verdicts if v.failed and not v.not_exported and exempt(v) is None]


def lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The tables."""
    yield "\ntype\tright\tof\texceptions\tnot exported by torch"
    for dtype in dict.fromkeys(v.dtype for v in verdicts):
        found = counts(v for v in verdicts if v.dtype == dtype)
        yield f"{dtype}\t{found.passed}\t{found.judged}\t{found.exempt}\t{found.not_exported}"
    stages = Counter(v.failed for v in faults(verdicts))
    yield f"\nfailures by stage: {dict(stages)}"
    for op, text, samples in grouped(verdicts):
        yield f"{op}\t{text}\t{samples}"
    for one in needless(verdicts):
        yield f"an exception that is none: {', '.join(one.ops)}: {one.reason}"
    externs = Counter(extern for v in verdicts if not v.failed for extern in v.externs)
    if externs:
        yield "left to the reference by their rows: " + ", ".join(
            f"{op} ({count})" for op, count in sorted(externs.items())
        )
    yield f"\n{counts(verdicts)}"


def grouped(verdicts: Iterable[Verdict]) -> Iterator[tuple[str, str, str]]:
    """Faults of an op with its first reason at each stage, and how many of which types."""
    found: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in faults(verdicts):
        found.setdefault((verdict.op, verdict.failed), []).append(verdict)
    for (op, stage), same in sorted(found.items()):
        types = Counter(one.dtype for one in same)
        first = same[0]
        reason = f"{stage}: {first.reason} ({first.dtype} #{first.index})"
        yield op, reason, ", ".join(f"{dtype} {count}" for dtype, count in types.items())


def line(verdict: Verdict) -> str:
    """A verdict as it stands in a run's file: JSON, one a line."""
    return json.dumps(asdict(verdict)) + "\n"


def load(path: Path) -> list[Verdict]:
    """A run's verdicts, from its file."""
    rows = map(json.loads, path.read_text().splitlines())
    return [Verdict(**{**row, "externs": tuple(row["externs"])}) for row in rows]
