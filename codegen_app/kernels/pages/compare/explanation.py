"""Why one build is faster than another: the compared figures that can explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen_app.kernels.modelled.comparison import STALLS
from codegen_app.kernels.pages.compare.figures import INNER_LOOP, LIMITER, OCCUPANCY
from codegen_app.kernels.pages.compare.verdict import ComparisonResult, TimeComparison
from codegen_app.kernels.queries.compared_figures import FigureGroup, FigureRow

_MOST = 3
_MIN_RATIO = 1.05
_MIN_STALL_POINTS = 5.0
#: Whether a kernel is usually faster with more of it; figures without a rule explain nothing.
_MORE_IS_FASTER = {
    OCCUPANCY: True,
    **dict.fromkeys(
        (
            *("scratch_bytes", "vgpr_spills", "sgpr_spills"),
            *("stack_bytes", "spill_store_bytes", "spill_load_bytes"),
            *("LDS bank conflict factor", "idle in the last round"),
            *("Instructions of the inner loop", "wait"),
        ),
        False,
    ),
    "bytes used of bytes moved": True,
    "matrix": True,
}


def explain(groups: Sequence[FigureGroup], side: int, times: TimeComparison) -> str:
    """Return a sentence on what explains the verdict on a side relative to the first one."""
    changes = [row for group in groups for row in group.changed if _differs(row, side)]
    if not times.decides:
        largest = [row for row in changes if row.texts or row.values[side] is not None]
        return _sentence("Differs most", largest, groups, side)
    with_it: list[FigureRow] = []
    against_it: list[FigureRow] = []
    for row, more_is_faster in _factors(groups):
        before, after = row.values[0], row.values[side]
        if not _differs(row, side) or before is None or after is None:
            continue
        is_faster = (after > before) == more_is_faster
        (with_it if is_faster == (times.outcome is ComparisonResult.FASTER) else against_it).append(
            row
        )
    if with_it:
        likely = _sentence("Likely because", with_it, groups, side)
        return " ".join(filter(None, (likely, _sentence("Against it", against_it, groups, side))))
    if not changes:
        return "Why is unknown: no compared figure differs."
    return f"Why is unknown. {_sentence('Differs most', changes, groups, side)}"


def _factors(groups: Sequence[FigureGroup]) -> Iterator[tuple[FigureRow, bool]]:
    """Yield rows that can explain a time, with whether more of it is faster."""
    for group in groups:
        for row in group.changed:
            if group.title == STALLS:
                yield row, False
            elif row.name in ("matrix", "wait") and group.title != INNER_LOOP:
                continue
            elif row.name in _MORE_IS_FASTER:
                yield row, _MORE_IS_FASTER[row.name]


def _differs(row: FigureRow, side: int) -> bool:
    """Whether a side differs enough from the first to be named."""
    before, after = row.values[0], row.values[side]
    if before is None or after is None:
        return False
    if row.unit == "%" and not row.texts:
        return abs(after - before) >= _MIN_STALL_POINTS
    return max(before, after) >= _MIN_RATIO * min(before, after) and before != after


def _sentence(
    begin: str, rows: Sequence[FigureRow], groups: Sequence[FigureGroup], side: int
) -> str:
    texts = [_change(row, groups, side) for row in rows[:_MOST]]
    return f"{begin}: {'; '.join(texts)}." if texts else ""


def _change(row: FigureRow, groups: Sequence[FigureGroup], side: int) -> str:
    """Return ``occupancy 2 of 8 waves per SIMD → 5 of 16 (limited by LDS)``."""
    titles = {id(each): group for group in groups for each in group.rows}
    group = titles[id(row)]
    before, after = (
        row.texts[place] if row.texts else _number(row.values[place], row.unit)
        for place in (0, side)
    )
    text = f"{row.title} {before} \N{RIGHTWARDS ARROW} {after}"
    if group.title == STALLS:
        return f"stalls on {text}"
    if group.title == INNER_LOOP:
        return f"{text} in the inner loop"
    if row.name == OCCUPANCY:
        limiter = next(each.texts[side] for each in group.rows if each.name == LIMITER)
        return f"{text}{f' (limited by {limiter})' if limiter else ''}"
    return text


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    if unit == "%":
        return f"{value:.0f}%"
    if not unit and value == int(value):
        return f"{value:.0f}"
    return f"{value:.4g}{f' {unit}' if unit else ''}"
