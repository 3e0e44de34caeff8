"""Selects one of the modelled candidates for a problem.

The least modelled time wins, unless others tie with it (``modelled_time.is_tied``). Among ties the
default stays, since nothing was shown to be better; else the least time is taken, of equals the
first by name. A candidate that the model does not fully know, or that was not checked, is never
preferred. If the default is such a candidate, it stays: nothing can be compared with it. No other
is selected either if the default could not be modelled; if it is wrong, another one is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.modelled_time import ModelledTime, fastest_first, is_tied

_DEFAULT = 0  # its index


def decide_modelled(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the selected one and those that tie with the fastest marked, and the
    ``reason``. None is selected if none was modelled, or the default was not."""
    found = {
        place: entry.modelled
        for place, entry in enumerate(entries)
        if entry.state is CandidateState.MODELLED and entry.modelled is not None
    }
    if not found:
        return list(entries)
    comparable = {place: one for place, one in found.items() if not one.obstacle}
    tied = _find_ties(comparable)
    chosen, why = _choose(entries, found, tied)
    return [
        _mark_entry(entry, found.get(place), place in tied and len(tied) > 1, place == chosen, why)
        for place, entry in enumerate(entries)
    ]


def _find_ties(comparable: Mapping[int, ModelledTime]) -> list[int]:
    """Return the fastest and those that the model cannot call slower, the fastest first."""
    order = fastest_first(comparable)
    return [place for place in order if is_tied(comparable[place], comparable[order[0]])]


def _choose(
    entries: Sequence[Entry], found: Mapping[int, ModelledTime], tied: Sequence[int]
) -> tuple[int | None, str]:
    default = found.get(_DEFAULT)
    if default is not None and default.obstacle:
        return _DEFAULT, f"default kept, no comparison possible: {default.obstacle}"
    if not tied or entries[_DEFAULT].state is CandidateState.NOT_MODELLED:
        return None, ""
    if _DEFAULT in tied:
        if len(tied) == 1:
            return _DEFAULT, ""
        others = len(tied) - 1
        return _DEFAULT, f"tied with {others} other{'s' * (others > 1)}, as modelled: default kept"
    least = found[tied[0]].time_ns.mid
    equal = [place for place in tied if found[place].time_ns.mid == least]
    return min(equal, key=lambda place: entries[place].kernel), ""


def _mark_entry(
    entry: Entry, modelled: ModelledTime | None, tied: bool, chosen: bool, why: str
) -> Entry:
    if modelled is None:
        return entry
    if chosen:
        return replace(entry, state=CandidateState.CHOSEN, tied=tied, reason=why)
    obstacle = modelled.obstacle
    return replace(entry, tied=tied, reason=f"not preferred: {obstacle}" if obstacle else "")
