"""Formats a comparison: Markdown for a pull request, and one line for a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from scheduler.text import one_line
from scheduler.track.causes import explain
from scheduler.track.compare import Comparison
from scheduler.track.compared_series import MeasuredSeries, SeriesRow, Status
from scheduler.track.differences import Aspect
from scheduler.track.evidence import cause_text
from scheduler.track.ratios import MIN_RATIO_SAMPLES
from scheduler.track.sides import Side

_MAX_ROWS = 50
_MAX_REASONS = 3
_DIGEST_ASPECTS = (Aspect.REVISION, Aspect.SOURCE, Aspect.CODE)  # hashes: the cause says as much
_EXPANDED_STATUSES = (Status.SLOWER, Status.FASTER, Status.UNCERTAIN)  # reviewers look for these


def summary(comparison: Comparison) -> str:
    """Return ``2 slower, 1 faster, 3 same``: statuses without series are left out."""
    counts = ((status, len(comparison.select(status))) for status in Status)
    return ", ".join(f"{n:,} {status.label}" for status, n in counts if n) or "no series"


def explain_difference(before: MeasuredSeries, after: MeasuredSeries) -> str:
    """Return the cause of a difference with its first reasons, or "" if a side is unknown."""
    if before.point is None or after.point is None:
        return ""
    result = explain(Side((before.point,)), Side((after.point,)))
    candidates = f" ({' or '.join(result.candidates)})" if len(result.candidates) > 1 else ""
    sentences = [
        difference.sentence
        for difference in result.differences
        if difference.aspect not in _DIGEST_ASPECTS
    ]
    reasons = "; ".join(sentences[:_MAX_REASONS] or result.reasons[:1])
    return f"{cause_text(result.cause)}{candidates}: {reasons}"


def stated_reason(row: SeriesRow) -> str:
    """Return the reason of a row's result, and how often to measure an uncertain one again."""
    if not row.rerun:
        return row.reason
    times = "once" if row.rerun == 1 else f"{row.rerun} times"
    return f"{row.reason}: measure the side {row.rerun_side} {times} more"


def table_rows(comparison: Comparison) -> tuple[SeriesRow, ...]:
    """Return the rows that ``markdown`` shows."""
    return tuple(row for status in Status for row in comparison.select(status)[:_MAX_ROWS])


def markdown(
    comparison: Comparison,
    titles: tuple[str, str],
    reasons: Callable[[SeriesRow], str] = stated_reason,
) -> str:
    """Return tables by status, slower and faster open, the rest folded; at most 50 rows each.

    ``titles`` names the two sides, ``reasons`` explains a row.
    """
    sections = [
        f"### {summary(comparison)}",
        f"{_code(titles[0])} → {_code(titles[1])}",
        *(
            "\n".join(_section(status, rows, reasons))
            for status in Status
            if (rows := comparison.select(status))
        ),
    ]
    if comparison.groups:
        means = (
            f"| {_cell(group.name)} | {group.ratio:.3f} | {group.low:.3f} to {group.high:.3f} "
            f"| {group.n:,} |"
            for group in comparison.groups
        )
        heading = "| group | geometric mean | 95% interval | series |\n|---|---:|---:|---:|"
        sections.append("\n".join([heading, *means]))
    settings = comparison.settings
    source = (
        f"from {comparison.pairs:,} series with the same code" if comparison.pairs else "assumed"
    )
    if not comparison.compared:
        sections.insert(1, "**No series could be compared.** See the reasons below.")
    if any(row.expected_high is not None for row in comparison.rows):
        sections.append(
            f"Series with fewer than {MIN_RATIO_SAMPLES} samples on a side: the side before is the"
            f" level of the last points of the trunk. Expected: {settings.expected:.0%} of new"
            " values, by the noise of these points. Slower, faster: outside, with"
            f" {settings.false_positives:.0%} false positives over all series. Uncertain: measure"
            " again."
        )
    sections.append(
        "Ratios of median times; above 1 is slower. Slower, faster: by more than "
        f"{settings.least_effect:.0%}, with {settings.false_discoveries:.0%} false discoveries "
        "over all series (Benjamini-Hochberg). Same: the interval lies within "
        f"±{settings.equivalence:.0%}. The same code counts as 1 in means. Run-to-run noise: "
        f"{comparison.floor:.1%}, {source}."
    )
    return "\n\n".join(sections) + "\n"


def _section(
    status: Status, rows: tuple[SeriesRow, ...], reasons: Callable[[SeriesRow], str]
) -> Iterator[str]:
    title = f"{status.label.capitalize()}: {len(rows):,}"
    if status in _EXPANDED_STATUSES:
        yield f"#### {title}"
    else:
        yield f"<details><summary>{title}</summary>"
    yield ""
    has_expected = any(row.expected_high is not None for row in rows)
    yield f"| series | after / before | 95% interval |{' expected |' * has_expected} n | reason |"
    yield f"|---|---:|---:|{'---:|' * has_expected}---:|---|"
    for row in rows[:_MAX_ROWS]:
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        interval = _range(row.low, row.high)
        if has_expected:
            interval += f" | {_range(row.expected_low, row.expected_high)}"
        counts = f"{row.n_before:,}, {row.n_after:,}" if row.n_before or row.n_after else ""
        reason = _cell(reasons(row))
        yield f"| {_cell(row.series)} | {ratio} | {interval} | {counts} | {reason} |"
    if len(rows) > _MAX_ROWS:
        yield ""
        yield f"{len(rows) - _MAX_ROWS:,} more rows not shown."
    if status not in _EXPANDED_STATUSES:
        yield ""
        yield "</details>"


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _cell(text: str) -> str:
    """Escape a file's text for a table cell, so that none of it acts as Markdown or HTML, or as a
    mention, a reference or a link of GitHub or GitLab."""
    return _AUTOMATIC_LINK.sub("\\g<0>\u200b", one_line(text)).translate(_ESCAPED)


def _code(text: str) -> str:
    """Return a file's text as a code span, without HTML for readers that do not render Markdown."""
    line = one_line(text).replace("`", "'").replace("<", "&lt;")
    return f"`{line}`"


#: What a forge makes a link of, if a zero-width space does not follow: ``@team``, ``#12`` and the
#: like, and addresses.
_AUTOMATIC_LINK = re.compile(r"[@#!~%$&](?=\w)|:(?=//)|(?<!\w)(?=www\.)")
_ESCAPED: Mapping[int, str] = str.maketrans(
    {
        "\\": "\\\\",
        "|": "\\|",
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "`": "'",
        "*": "\\*",
        "[": "\\[",
        "_": "\\_",
        "~": "\\~",
    }
)
