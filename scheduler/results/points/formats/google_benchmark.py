"""Google Benchmark's JSON (the options ``benchmark_format=json``, ``benchmark_out``).

Repetitions of a run are samples of one point; a file of aggregates alone gives the median. Real
time is the metric ``time``; ``cpu_time``, ``bytes_per_second`` and ``items_per_second`` are series
of their own. What failed or was skipped has no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.results.points import fields
from scheduler.results.points.formats.common import NANOSECONDS, of_samples, point
from scheduler.results.points.model import Context, LeftOut, Point, Points

_RATES = {"bytes_per_second": "B/s", "items_per_second": "items/s"}
_AGGREGATE = "median"


def accepts(content: Any) -> bool:
    """Whether it is such a file."""
    return isinstance(content, dict) and "benchmarks" in content and "context" in content


def read(content: Any, context: Context) -> Points:
    """A point for each metric of each benchmark. Raises ``UserError`` naming row and field."""
    whole = fields.as_object(content, "document")
    about = fields.as_object(whole["context"], "context")
    date = about.get("date")
    when = fields.as_moment(date, "context.date") if date else None
    host = about.get("host_name")
    if not context.device and isinstance(host, str):
        context = replace(context, device=fields.as_text(host, "context.host_name", 200))
    rows = fields.as_list(whole["benchmarks"], "benchmarks")
    fields.need(bool(rows), "benchmarks", "there are none")
    runs: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    left_out: list[LeftOut] = []
    for place, row in enumerate(rows):
        at = f"benchmarks[{place}]"
        one = fields.as_object(row, at)
        name = fields.as_text(one.get("run_name") or one.get("name"), f"{at}.name", 500)
        failure = one.get("error_message") or one.get("skip_message")
        if one.get("error_occurred") or one.get("skipped") or failure:
            left_out.append(LeftOut(at, f"{name}: {str(failure or 'it failed')[:200]}"))
            continue
        runs.setdefault(name, []).append((at, one))
    made = [each for name, found in runs.items() for each in _points(name, found, context, when)]
    return Points(tuple(made), tuple(left_out))


def _points(
    name: str, found: list[tuple[str, dict[str, Any]]], context: Context, when: datetime | None
) -> list[Point]:
    single = [row for row in found if row[1].get("run_type", "iteration") == "iteration"]
    medians = [row for row in found if row[1].get("aggregate_name") == _AGGREGATE]
    made = []
    for metric, field_name in (("time", "real_time"), ("cpu_time", "cpu_time")):
        if single:
            at = f"{single[0][0]}.{field_name}"
            figure = of_samples([_time(row, at, field_name) for at, row in single], at)
            if len(single) == 1:  # a mean of many iterations: nothing says how far it varies
                figure |= {"low": None, "high": None}
        elif medians:
            at, row = medians[0]
            figure = {"value": _time(row, at, field_name), "n": _repetitions(row, at)}
        else:
            continue
        made.append(point(context, name, at, metric=metric, unit="ns", measured_at=when, **figure))
    for field_name, unit in _RATES.items():
        rates = [(at, row) for at, row in (single or medians) if field_name in row]
        if rates:
            at = f"{rates[0][0]}.{field_name}"
            values = [
                fields.as_number(row[field_name], f"{place}.{field_name}") for place, row in rates
            ]
            figure = of_samples(values, at)
            if len(values) == 1:
                figure |= {"low": None, "high": None, "samples": ()}
            made.append(
                point(context, name, at, metric=field_name, unit=unit, measured_at=when, **figure)
            )
    return made


def _time(row: Mapping[str, Any], at: str, name: str) -> float:
    unit = row.get("time_unit", "ns")
    fields.need(isinstance(unit, str) and unit in NANOSECONDS, f"{at}.time_unit", "ns, us, ms or s")
    return fields.as_number(row.get(name), f"{at}.{name}") * NANOSECONDS[str(unit)]


def _repetitions(row: Mapping[str, Any], at: str) -> int:
    return fields.as_count(row.get("repetitions", 1), f"{at}.repetitions", least=1)
