"""The goals that were set, held against the best of the other detectors over all kinds."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.changes.scoring import WITHIN, Score

APPEND_MS = 5.0


def goals(total: dict[str, Score], cost: float) -> Iterator[tuple[str, bool]]:
    ours = total["kiln"]
    others = {name: score for name, score in total.items() if name != "kiln"}
    quiet = min(others, key=lambda name: others[name].false_alarms)
    least = others[quiet].false_alarms
    yield (
        f"false alarms in 1,000: {ours.false_alarms:.2f}, at most half of {quiet}'s {least:.2f}",
        ours.false_alarms <= least / 2,
    )
    for name, score in others.items():
        share, runs = score.share(0.05), score.runs(0.05)
        yield (
            f"5% steps found: {ours.share(0.05):.0%} in {ours.runs(0.05):g} runs, "
            f"{name} {share:.0%} in {runs:g}",
            ours.share(0.05) >= share and ours.runs(0.05) <= runs,
        )
    yield (
        f"2% steps found within {WITHIN} runs: {ours.share(0.02):.0%}, more than half",
        ours.share(0.02) > 0.5,
    )
    yield f"a value at 1,000: {cost:.2f} ms, at most {APPEND_MS:g}", cost <= APPEND_MS
