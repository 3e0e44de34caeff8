"""Selects one of the measured candidates for a problem.

The fastest median wins unless others tie with it: a candidate whose median lies within the fastest
one's interval cannot be called slower. Among ties the default stays (nothing was shown to be
better), else the first by name is taken: the same samples give the same choice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from scheduler.tuning.ledger import CandidateState, Entry


def decide(entries: Sequence[Entry], among: Collection[int]) -> list[Entry]:
    """Return the entries with the selected one and those that tie with the fastest marked. The
    selected entry's ``reason`` says what decided.

    ``among`` are the indices that may win (candidates of the last rounds). None is selected if none
    was measured.
    """
    measured = {
        place: entry.measurement
        for place, entry in enumerate(entries)
        if place in among
        and entry.state is CandidateState.MEASURED
        and entry.measurement is not None
    }
    if not measured:
        return list(entries)
    best = min(measured.values(), key=lambda one: one.median_ns)
    tied = [place for place, one in measured.items() if one.median_ns <= best.high_ns]
    chosen = min(tied, key=lambda place: (not entries[place].is_default, entries[place].kernel))
    return [
        replace(
            entry,
            tied=place in tied and len(tied) > 1,
            state=CandidateState.CHOSEN if place == chosen else entry.state,
            reason=_choice_reason(entry, len(tied) - 1) if place == chosen else entry.reason,
        )
        for place, entry in enumerate(entries)
    ]


def _choice_reason(chosen: Entry, others: int) -> str:
    samples = len(chosen.measurement.samples_ns) if chosen.measurement is not None else 0
    return decision_reason(others, is_default=chosen.is_default, samples=samples)


def decision_reason(others: int, *, is_default: bool, samples: int) -> str:
    """Return why a candidate was selected that ties with ``others`` more; "" if it is the
    fastest."""
    if others:
        tied = f"tied with {others} other{'s' * (others > 1)}"
        if is_default:
            return f"{tied}: default kept, since none is shown to be faster"
        return f"{tied} (not the default): first by name"
    return "fastest of single samples, without an interval" if samples == 1 else ""
