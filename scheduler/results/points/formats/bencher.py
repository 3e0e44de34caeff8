"""Bencher's Metric Format (BMF): ``{benchmark: {measure: {value, lower_value, upper_value}}}``.

Its measure ``latency`` (nanoseconds) is the metric ``time``; ``throughput`` is operations a second,
``build-time`` seconds, ``file-size`` bytes. A measure of somebody's own has no unit in the file.
"""

from __future__ import annotations

from typing import Any

from scheduler.results.points import fields
from scheduler.results.points.formats.common import point
from scheduler.results.points.model import Context, Points

_MEASURES = {
    "latency": ("time", "ns"),
    "throughput": ("throughput", "ops/s"),
    "build-time": ("build-time", "s"),
    "file-size": ("file-size", "B"),
}
_VALUES = ("value", "lower_value", "upper_value")


def accepts(content: Any) -> bool:
    """Whether it is such a file: it has no mark of its own."""
    if not isinstance(content, dict) or not content:
        return False
    return all(
        isinstance(measures, dict)
        and measures
        and all(isinstance(one, dict) and "value" in one for one in measures.values())
        for measures in content.values()
    )


def read(content: Any, context: Context) -> Points:
    """A point for each measure. Raises ``UserError`` naming the benchmark and the field."""
    made = []
    for name, measures in fields.as_object(content, "document").items():
        for measure, given in fields.as_object(measures, name[:80]).items():
            at = f"{name[:80]}.{measure[:80]}"
            one = fields.as_object(given, at)
            fields.known(one, _VALUES, at)
            metric, unit = _MEASURES.get(measure, (measure, ""))
            value = fields.as_number(one.get("value"), f"{at}.value")
            low, high = (
                None if one.get(bound) is None else fields.as_number(one[bound], f"{at}.{bound}")
                for bound in _VALUES[1:]
            )
            fields.need(low is None or low <= value, f"{at}.lower_value", "it is above the value")
            fields.need(high is None or high >= value, f"{at}.upper_value", "it is below the value")
            bounds: dict[str, Any] = (
                {} if low is None or high is None else {"low": low, "high": high}
            )
            made.append(point(context, name, at, metric=metric, unit=unit, value=value, **bounds))
    return Points(tuple(made))
