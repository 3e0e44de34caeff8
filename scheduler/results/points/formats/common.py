"""What the readers of other tools' files share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.outcome import UserError
from scheduler.results.points import fields
from scheduler.results.points.model import (
    MOST_SAMPLES,
    Context,
    Point,
    RevisionKey,
    SeriesKey,
    better_of,
)
from scheduler.stats.intervals import rank_interval

#: Nanoseconds in a unit of time.
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def point(
    context: Context,
    problem: str,
    at: str,
    *,
    metric: str,
    unit: str,
    value: float,
    measured_at: datetime | None = None,
    **more: Any,
) -> Point:
    """A point of what the file says, and beside it the context. Raises ``UserError`` where neither
    says of which device and revision it is."""
    fields.need(bool(context.device), "device", "the file does not say it: say it beside the file")
    fields.need(
        bool(context.revision), "revision", "the file does not say it: say it beside the file"
    )
    series = SeriesKey(
        problem=fields.as_text(problem, at, 500, empty=False),
        sizes={},
        target=context.target,
        device=context.device,
        toolchain=context.toolchain,
        metric=fields.as_text(metric, f"{at}.metric", 80, empty=False),
        unit=fields.as_text(unit, f"{at}.unit", 40),
    )
    return Point(
        series=series,
        value=fields.as_number(value, f"{at}.value"),
        measured_at=context.measured_at or measured_at or context.now,
        revision=RevisionKey(
            context.revision, context.revision_at, context.branch, context.repository
        ),
        **{"better": better_of(unit), **more},
    )


def of_samples(samples: Sequence[float], at: str) -> dict[str, Any]:
    """The fields of a point that stands for samples: their median with its interval. Of more than a
    point keeps it has every so many."""
    if not samples:
        raise UserError(f"{at}: there are no samples")
    if not all(map(math.isfinite, samples)):
        raise UserError(f"{at}: one is not finite in nanoseconds")
    step = -(-len(samples) // MOST_SAMPLES)
    kept = tuple(samples[::step])
    interval = rank_interval(kept)
    return {
        "value": interval.median,
        "low": interval.low,
        "high": interval.high,
        "n": len(samples),
        "samples": kept,
    }


def with_revision(context: Context, name: Any, **more: Any) -> Context:
    """The context with the file's own revision, where nothing else was said."""
    if context.revision or not isinstance(name, str) or not name:
        return context
    return replace(context, revision=fields.as_text(name, "revision", 100), **more)
