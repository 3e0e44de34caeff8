"""Selects one of the candidates of a problem by its measured, or its modelled, time.

Measured: the fastest median wins unless others tie with it. A candidate whose median lies within
the fastest one's interval cannot be called slower. Among ties the default stays (nothing was shown
to be better), else the first by name is taken: the same samples give the same choice.

Modelled: the least time wins, unless others tie with it (``modelled_time.is_tied``). Among ties the
default stays; else the least time is taken, of equals the first by name. A candidate that the model
does not fully know, or that was not checked, is never preferred. If the default is such a
candidate, it stays: nothing can be compared with it. No other is selected either if the default
could not be modelled; if it is wrong, another one is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from scheduler.benchmark.measurement import Measurement
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.modelled_time import ModelledTime, fastest_first, is_tied

_DEFAULT_INDEX = 0  # its index


def decide(entries: Sequence[Entry], eligible: Collection[int]) -> list[Entry]:
    """Return the entries with the selected one and those that tie with the fastest marked. The
    ``reason`` of the selected entry says what decided, that of a modelled one what keeps it from
    being preferred.

    ``eligible`` are the indices that may win. None is selected if none was timed.
    """
    timed = {index: entry for index, entry in enumerate(entries) if index in eligible}
    measured = {
        index: entry.measurement
        for index, entry in timed.items()
        if entry.state is CandidateState.MEASURED and entry.measurement is not None
    }
    modelled = {
        index: entry.modelled
        for index, entry in timed.items()
        if entry.state is CandidateState.MODELLED and entry.modelled is not None
    }
    if not measured and not modelled:
        return list(entries)
    decision = (
        _choose_measured(entries, measured) if measured else _choose_modelled(entries, modelled)
    )
    chosen_index, chosen_reason, tied = decision
    decided = []
    for index, entry in enumerate(entries):
        state, reason = entry.state, entry.reason
        if index == chosen_index:
            state, reason = CandidateState.CHOSEN, chosen_reason
        elif index in modelled and modelled[index].obstacle:
            reason = f"not preferred: {modelled[index].obstacle}"
        is_tie = index in tied and len(tied) > 1
        decided.append(replace(entry, state=state, reason=reason, tied=is_tie))
    return decided


def _choose_measured(
    entries: Sequence[Entry], measured: Mapping[int, Measurement]
) -> tuple[int, str, list[int]]:
    best = min(measured.values(), key=lambda measurement: measurement.median_ns)
    tied = [
        index for index, measurement in measured.items() if measurement.median_ns <= best.high_ns
    ]
    chosen = min(tied, key=lambda index: (not entries[index].is_default, entries[index].kernel))
    samples = len(measured[chosen].samples_ns)
    is_default = entries[chosen].is_default
    return chosen, decision_reason(len(tied) - 1, is_default=is_default, samples=samples), tied


def _choose_modelled(
    entries: Sequence[Entry], modelled: Mapping[int, ModelledTime]
) -> tuple[int | None, str, list[int]]:
    comparable = {
        index: modelled_time
        for index, modelled_time in modelled.items()
        if not modelled_time.obstacle
    }
    order = fastest_first(comparable)
    tied = [index for index in order if is_tied(comparable[index], comparable[order[0]])]
    default = modelled.get(_DEFAULT_INDEX)
    if default is not None and default.obstacle:
        return _DEFAULT_INDEX, f"default kept, no comparison possible: {default.obstacle}", tied
    if not tied or entries[_DEFAULT_INDEX].state is CandidateState.NOT_MODELLED:
        return None, "", tied
    if _DEFAULT_INDEX in tied:
        if len(tied) == 1:
            return _DEFAULT_INDEX, "", tied
        tie_text = _count_others(len(tied) - 1)
        return _DEFAULT_INDEX, f"{tie_text}, as modelled: default kept", tied
    fastest_ns = modelled[tied[0]].time_ns.mid
    equal = [index for index in tied if modelled[index].time_ns.mid == fastest_ns]
    return min(equal, key=lambda index: entries[index].kernel), "", tied


def decision_reason(others: int, *, is_default: bool, samples: int) -> str:
    """Return why a candidate was selected that ties with ``others`` more; "" if it is the
    fastest."""
    if others:
        tied = _count_others(others)
        if is_default:
            return f"{tied}: default kept, since none is shown to be faster"
        return f"{tied} (not the default): first by name"
    return "fastest of single samples, without an interval" if samples == 1 else ""


def _count_others(others: int) -> str:
    return f"tied with {others} other{'s' * (others > 1)}"
