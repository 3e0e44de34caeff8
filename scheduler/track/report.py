"""Formats a comparison: Markdown for a pull request, and one line for a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scheduler.text import one_line
from scheduler.track.causes import explain
from scheduler.track.compare import Comparison, MeasuredSeries, SeriesRow, Status
from scheduler.track.differences import Aspect
from scheduler.track.evidence import cause_text
from scheduler.track.sides import Side

_MOST_ROWS = 50
_MOST_REASONS = 3
_PLAIN = (Aspect.REVISION, Aspect.SOURCE, Aspect.CODE)  # hashes: the cause says as much
_EXPANDED = (Status.SLOWER, Status.FASTER)  # not folded: reviewers look for these


def summary(comparison: Comparison) -> str:
    """Return ``2 slower, 1 faster, 3 same``: statuses without series are left out."""
    counts = ((status, len(comparison.select(status))) for status in Status)
    return ", ".join(f"{n:,} {status.label}" for status, n in counts if n) or "no series"


def explain_difference(one: MeasuredSeries, other: MeasuredSeries) -> str:
    """Return the cause of a difference with its first reasons, or "" if a side is unknown."""
    if one.point is None or other.point is None:
        return ""
    found = explain(Side((one.point,)), Side((other.point,)))
    candidates = f" ({' or '.join(found.candidates)})" if len(found.candidates) > 1 else ""
    telling = [each.sentence for each in found.differences if each.aspect not in _PLAIN]
    reasons = "; ".join(telling[:_MOST_REASONS] or found.reasons[:1])
    return f"{cause_text(found.cause)}{candidates}: {reasons}"


def table_rows(comparison: Comparison) -> tuple[SeriesRow, ...]:
    """Return the rows that ``markdown`` shows."""
    return tuple(row for status in Status for row in comparison.select(status)[:_MOST_ROWS])


def markdown(
    comparison: Comparison,
    titles: tuple[str, str],
    reasons: Callable[[SeriesRow], str] = lambda row: row.reason,
) -> str:
    """Return tables by status, slower and faster open, the rest folded; at most 50 rows each.

    ``titles`` names the two sides, ``reasons`` explains a row.
    """
    return "\n".join(_lines(comparison, titles, reasons)) + "\n"


def _lines(
    comparison: Comparison, titles: tuple[str, str], reasons: Callable[[SeriesRow], str]
) -> Iterator[str]:
    yield f"### {summary(comparison)}"
    yield ""
    yield f"`{_cell(titles[0])}` → `{_cell(titles[1])}`"
    for status in Status:
        rows = comparison.select(status)
        if rows:
            yield ""
            yield from _section(status, rows, reasons)
    if comparison.groups:
        yield ""
        yield from _groups(comparison)
    yield ""
    yield from _method(comparison)


def _section(
    status: Status, rows: tuple[SeriesRow, ...], reasons: Callable[[SeriesRow], str]
) -> Iterator[str]:
    title = f"{status.label.capitalize()}: {len(rows):,}"
    if status in _EXPANDED:
        yield f"#### {title}"
    else:
        yield f"<details><summary>{title}</summary>"
    yield ""
    yield "| series | after / before | 95% interval | n | reason |"
    yield "|---|---:|---:|---:|---|"
    for row in rows[:_MOST_ROWS]:
        figures = f"{_ratio(row)} | {_interval(row)} | {_count(row)}"
        yield f"| {_cell(row.series)} | {figures} | {_cell(reasons(row))} |"
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"{len(rows) - _MOST_ROWS:,} more rows not shown."
    if status not in _EXPANDED:
        yield ""
        yield "</details>"


def _groups(comparison: Comparison) -> Iterator[str]:
    yield "| group | geometric mean | 95% interval | series |"
    yield "|---|---:|---:|---:|"
    for group in comparison.groups:
        interval = f"{group.low:.3f} to {group.high:.3f}"
        yield f"| {_cell(group.name)} | {group.ratio:.3f} | {interval} | {group.n:,} |"


def _method(comparison: Comparison) -> Iterator[str]:
    settings = comparison.settings
    floor = f"{comparison.floor:.1%}"
    shown = (
        f"from {comparison.pairs:,} series with the same code" if comparison.pairs else "assumed"
    )
    yield (
        "Ratios of median times; above 1 is slower. Slower, faster: by more than "
        f"{settings.least_effect:.0%}, with {settings.false_discoveries:.0%} false discoveries "
        "over all series (Benjamini-Hochberg). Same: the interval lies within "
        f"±{settings.equivalence:.0%}. The same code counts as 1 in means. Run-to-run noise: "
        f"{floor}, {shown}."
    )


def _ratio(row: SeriesRow) -> str:
    return "" if row.ratio is None else f"{row.ratio:.3f}"


def _interval(row: SeriesRow) -> str:
    return "" if row.low is None or row.high is None else f"{row.low:.3f} to {row.high:.3f}"


def _count(row: SeriesRow) -> str:
    return f"{row.n_before:,}, {row.n_after:,}" if row.n_before or row.n_after else ""


def _cell(text: str) -> str:
    """Escape a file's text for a table cell, so that none of it acts as Markdown or HTML."""
    plain = one_line(text)
    return plain.translate(_ESCAPED)


_ESCAPED: Mapping[int, str] = str.maketrans(
    {
        "|": "\\|",
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "`": "'",
        "*": "\\*",
        "[": "\\[",
        "_": "\\_",
    }
)
