"""The goals that were set, held against the best of the other detectors over all kinds.

Whoever alarms at any value finds every step at once. So how often and how soon steps are found is
held against the others as they are usually set, and then as they are about as quiet as ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.changes.detectors import QUIET
from tests.benchmarks.changes.scoring import CLEAR, WITHIN, Score

APPEND_MS = 5.0
CLEAR_RUNS = 4
"""A step of many times the noise: a person sees it at once."""


def goals(total: dict[str, Score], cost: float) -> Iterator[tuple[str, bool]]:
    ours = total["kiln"]
    others = {name: score for name, score in total.items() if name != "kiln"}
    usual = {name: score.false_alarms for name, score in others.items() if name not in QUIET}
    if usual:
        quiet = min(usual, key=lambda name: usual[name])
        yield (
            f"false alarms in 1,000: {ours.false_alarms:.2f}, at most half of {quiet}'s "
            f"{usual[quiet]:.2f}",
            ours.false_alarms <= usual[quiet] / 2,
        )
    for name, score in others.items():
        share, runs = score.share(0.05), score.runs(0.05)
        yield (
            f"5% steps found: {ours.share(0.05):.0%} in {ours.runs(0.05):g} runs, "
            f"{name} {share:.0%} in {runs:g}, {score.false_alarms:.2f} false alarms in 1,000",
            ours.share(0.05) >= share and ours.runs(0.05) <= runs,
        )
    yield (
        f"2% steps found within {WITHIN} runs: {ours.share(0.02):.0%}, more than half",
        ours.share(0.02) > 0.5,
    )
    yield (
        f"{CLEAR:.0%} steps: {ours.share(CLEAR):.0%} in {ours.runs(CLEAR):g} runs, at most "
        f"{CLEAR_RUNS}",
        ours.runs(CLEAR) <= CLEAR_RUNS,
    )
    yield f"a value at 1,000: {cost:.2f} ms, at most {APPEND_MS:g}", cost <= APPEND_MS
