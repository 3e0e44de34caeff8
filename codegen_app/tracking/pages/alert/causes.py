"""The causes of an alert's changes: evidence shared by all is stated once, the rest per change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codegen_app.tracking.models import Change
from scheduler.track.differences import Aspect

_DIGESTS = (Aspect.REVISION, Aspect.SOURCE, Aspect.CODE)  # differ per series: both sides
MAX_SHOWN = 12


@dataclass(frozen=True)
class CauseGroup:
    """Changes that one rule attributes to one cause for one reason. ``differs`` lists the
    differences between the sides common to all of them, ``notes`` other common evidence for the
    cause or against it. ``next_step`` and ``url``, the two sides, are those of the largest
    change."""

    cause: str
    rule: str
    n_series: int
    candidates: tuple[str, ...]
    reason: str
    notes: tuple[str, ...]
    differs: tuple[str, ...]
    next_step: str
    url: str


@dataclass(frozen=True)
class _Evidence:
    """The evidence for a change: sentences of differences at the point of the change, by aspect,
    and other notes."""

    reason: str
    notes: tuple[str, ...]
    differs: Mapping[str, str]


def group_causes(
    changes: Sequence[Change],
) -> tuple[tuple[CauseGroup, ...], dict[int, tuple[str, ...]]]:
    """Return the groups in the order of their first change, and by the key of a change the
    differences and notes that its group does not have. Changes not yet analysed are in no group."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    known = {one.pk: _evidence(one.explanation) for one in changes if one.explained_at}
    for one in changes:
        if one.pk in known:
            groups.setdefault((one.cause, one.rule, known[one.pk].reason), []).append(one)
    found, besides = [], {}
    for of in groups.values():
        sides = [known[one.pk] for one in of]
        same = _shared_texts([tuple(one.differs) for one in sides])
        notes = _shared_texts([one.notes for one in sides])
        found.append(_cause_group(of, sides[0].reason, notes, same))
        for one in of:
            besides[one.pk] = tuple(_own_evidence(known[one.pk], {*same, *notes}))[:MAX_SHOWN]
    return tuple(found), besides


def _cause_group(
    of: Sequence[Change], reason: str, notes: Sequence[str], same: Sequence[str]
) -> CauseGroup:
    first = of[0]
    return CauseGroup(
        cause=first.cause,
        rule=first.rule,
        n_series=len({one.series_id for one in of}),
        candidates=tuple(map(str, first.explanation.get("candidates", ()))),
        reason=reason,
        notes=tuple(notes),
        differs=tuple(same[:MAX_SHOWN]),
        next_step=first.explanation.get("next_step", ""),
        url=first.get_absolute_url(),
    )


def _evidence(explanation: Mapping[str, Any]) -> _Evidence:
    reasons = [str(one) for one in explanation.get("reasons", ())]
    here = [one for one in explanation.get("differences", ()) if one.get("here", True)]
    differs = {str(one["sentence"]): str(one.get("aspect", "")) for one in here}
    notes = tuple(one for one in reasons[1:] if one not in differs)
    return _Evidence(reasons[0] if reasons else "", notes, differs)


def _shared_texts(each: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the texts that all have, in the order of the first."""
    others = [set(one) for one in each[1:]]
    return [text for text in each[0] if all(text in other for other in others)]


def _own_evidence(one: _Evidence, shared: set[str]) -> list[str]:
    telling = [text for text, aspect in one.differs.items() if aspect not in _DIGESTS]
    return [text for text in (*telling, *one.notes) if text not in shared]
