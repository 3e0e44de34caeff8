"""Candidates of one problem in several languages: the fastest of each, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from codegen_app.tuning.queries.measured_row import MeasuredRow


@dataclass(frozen=True)
class TriedCandidate(MeasuredRow):
    """One candidate, whatever its outcome; ``metrics`` come with its time, if it has one."""

    language: str
    kernel: str
    url: str


@dataclass(frozen=True)
class LanguageRow(TriedCandidate):
    """The fastest candidate in a language; without a kernel if none was measured.

    ``ratio`` is its median over that of the fastest of all languages (1.0 for the fastest itself);
    ``is_clear`` means that both have bounds and these do not overlap. ``tried`` counts the
    candidates in the language, ``measured`` those with a time, and ``reasons`` lists each distinct
    reason why others have none.
    """

    tried: int = 0
    measured: int = 0
    ratio: float | None = None
    is_clear: bool = False
    reasons: tuple[str, ...] = ()


def language_rows(candidates: Iterable[tuple[TriedCandidate, str]]) -> tuple[LanguageRow, ...]:
    """Return a row per language, the fastest first; none if all candidates are in one language.
    Each candidate comes with the reason why it has no time, "" if it has one or was not tried."""
    groups: dict[str, list[tuple[TriedCandidate, str]]] = defaultdict(list)
    for candidate, reason in candidates:
        groups[candidate.language].append((candidate, reason))
    if len(groups) < 2:
        return ()
    rows: list[LanguageRow] = []
    for language, tried in groups.items():
        timed = [candidate for candidate, _ in tried if candidate.metrics]
        best = min(timed, key=_median, default=None)
        row = LanguageRow(
            language=language,
            kernel=best.kernel if best else "",
            url=best.url if best else "",
            metrics=best.metrics if best else {},
            emulated=bool(best and best.emulated),
            origin=best.origin if best else "",
            tried=len(tried),
            measured=len(timed),
            reasons=tuple(dict.fromkeys(reason for _, reason in tried if reason)),
        )
        rows.append(row)
    rows.sort(key=_median)
    fastest = rows[0]
    for place, row in enumerate(rows):
        if row.metrics:  # then the fastest has metrics too
            has_bounds = bool(row.time.bounds and fastest.time.bounds)
            is_clear = has_bounds and place > 0 and row.time.low > fastest.time.high
            ratio = row.time.value / fastest.time.value
            rows[place] = replace(row, ratio=ratio, is_clear=is_clear)
    return tuple(rows)


def _median(row: TriedCandidate) -> float:
    return float("inf") if row.median_ns is None else row.median_ns
