"""The causes of an alert's changes: evidence shared by all is stated once, the rest per change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def group_causes(
    changes: Sequence[Change],
) -> tuple[tuple[CauseGroup, ...], dict[int, tuple[str, ...]]]:
    """Return the groups in the order of their first change, and by the key of a change the
    differences and notes that its group does not have. Changes not yet analysed are in no group."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    differences: dict[int, dict[str, str]] = {}  # sentences at the point of a change, with aspects
    notes: dict[int, tuple[str, ...]] = {}
    for change in changes:
        if change.explained_at is None:
            continue
        reasons = [str(reason) for reason in change.explanation.get("reasons", ())]
        found = differences[change.pk] = {
            str(difference["sentence"]): str(difference.get("aspect", ""))
            for difference in change.explanation.get("differences", ())
            if difference.get("here", True)
        }
        notes[change.pk] = tuple(reason for reason in reasons[1:] if reason not in found)
        groups.setdefault((change.cause, change.rule, (reasons or [""])[0]), []).append(change)
    rows, details = [], {}
    for (cause, rule, reason), members in groups.items():
        first = members[0]
        shared_differences = _shared_texts([tuple(differences[member.pk]) for member in members])
        shared_notes = _shared_texts([notes[member.pk] for member in members])
        rows.append(
            CauseGroup(
                cause=cause,
                rule=rule,
                n_series=len({member.series_id for member in members}),
                candidates=tuple(map(str, first.explanation.get("candidates", ()))),
                reason=reason,
                notes=tuple(shared_notes),
                differs=tuple(shared_differences[:MAX_SHOWN]),
                next_step=first.explanation.get("next_step", ""),
                url=first.get_absolute_url(),
            )
        )
        shared = {*shared_differences, *shared_notes}
        for member in members:
            aspects = differences[member.pk]
            telling = [text for text, aspect in aspects.items() if aspect not in _DIGESTS]
            texts = [text for text in (*telling, *notes[member.pk]) if text not in shared]
            details[member.pk] = tuple(texts[:MAX_SHOWN])
    return tuple(rows), details


def _shared_texts(lists: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the texts that all have, in the order of the first."""
    others = [set(texts) for texts in lists[1:]]
    return [text for text in lists[0] if all(text in other for other in others)]
