"""Google Benchmark's JSON (the options ``benchmark_format=json``, ``benchmark_out``).

Repetitions of a run are samples of one point. A file with only aggregates gives the median; without
a median (before 1.2) the mean, as ``time_mean`` and so on. Real time is the metric ``time``;
``cpu_time`` and the counters are separate series. Failed or skipped runs and complexities have
no figure.

Versions before 1.5 give neither a row's ``run_type`` nor its ``run_name``: the row's name and
fields tell its kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from scheduler.results.points import fields
from scheduler.results.points.formats.common import (
    NANOSECONDS,
    Rows,
    benchmarks,
    check_row_count,
    make_point,
    sample_fields,
)
from scheduler.results.points.model import MAX_MEASUREMENTS, ImportContext, Points, better_direction

_UNITS = {"bytes_per_second": "B/s", "items_per_second": "items/s"}
_MEDIAN, _MEAN = "median", "mean"
_COMPLEXITIES = ("BigO", "RMS")
_OLD_AGGREGATE = re.compile(r"(.+)_(mean|median|stddev)", re.DOTALL)
#: Up to version 1.4: ``2016/03/17-18:40:25``.
_OLD_DATE = re.compile(r"(\d{4})/(\d\d)/(\d\d)-(\d\d:\d\d:\d\d)")
#: Counters of which more is better, by name: the file does not say it otherwise.
_RATE = re.compile(r"(?:_per_second|/s|flops|(?:^|[_/])[kmgtp]?ops)$", re.IGNORECASE)
#: Fields of a row that are not counters.
_ROW_FIELDS = {
    *("name", "run_name", "run_type", "family_index", "per_family_instance_index", "label"),
    *("repetitions", "repetition_index", "threads", "iterations", "time_unit", "real_time"),
    *("cpu_time", "aggregate_name", "aggregate_unit", "cpu_coefficient", "real_coefficient"),
    *("big_o", "rms", "error_occurred", "error_message", "skipped", "skip_message"),
}


@dataclass
class _Row:
    """A row: its benchmark (``name``), its aggregate or "", its figures and units by metric."""

    location: str
    name: str
    aggregate: str
    label: str
    index: int | None
    repetitions: int
    figures: dict[str, tuple[float, str]] = field(default_factory=dict)


def read(content: Any, context: ImportContext) -> Points:
    """Read a point for each metric of each benchmark. Raises ``UserError`` naming the field for
    errors that concern the whole file."""
    document = fields.as_object(content, "document")
    about = fields.as_object(document["context"], "context")
    measured_at = None
    if date := about.get("date"):
        old_date = _OLD_DATE.fullmatch(date) if isinstance(date, str) else None
        text = "{}-{}-{} {}".format(*old_date.groups()) if old_date else date
        measured_at = fields.as_timestamp(text, "context.date")
        fields.check_clock(measured_at, context.now, "context.date")
    host = about.get("host_name")
    if not context.device and isinstance(host, str):
        context = replace(context, device=fields.as_text(host, "context.host_name", 200))
    numbered_rows = benchmarks(document)
    check_row_count(len(numbered_rows), "benchmarks")
    rows = Rows(context)
    runs: dict[str, list[_Row]] = {}
    for row in _rows(numbered_rows, rows):
        runs.setdefault(row.name, []).append(row)
        rows.need_room(row.location, len(runs))
    for same_name in runs.values():
        for name, run in _by_series(same_name).items():
            _add_run(rows, name, run, measured_at)
    return rows.points()


# ---- rows


def _rows(numbered_rows: Sequence[tuple[str, Any]], rows: Rows) -> Iterator[_Row]:
    """Yield the rows that have figures."""
    texts = (row.get("name") for _, row in numbered_rows if isinstance(row, dict))
    names = {name for name in texts if isinstance(name, str)}
    for location, row in numbered_rows:
        name = (row.get("run_name") or row.get("name")) if isinstance(row, dict) else ""
        with rows.row(location, name):
            entry = fields.as_object(row, location)
            name = fields.as_text(name, f"{location}.name", 500, empty=False)
            failure = entry.get("error_message") or entry.get("skip_message")
            failed = bool(entry.get("error_occurred") or entry.get("skipped") or failure)
            fields.require(not failed, location, str(failure or "the benchmark failed"))
            yield _row(entry, location, name, names, rows)


def _row(entry: Mapping[str, Any], location: str, name: str, names: set[str], rows: Rows) -> _Row:
    name, aggregate = _parse_kind(entry, location, name, names)
    is_complexity = aggregate in _COMPLEXITIES
    fields.require(
        not is_complexity, location, f"a complexity coefficient ({aggregate}), not a time"
    )
    index = entry.get("repetition_index")
    result = _Row(
        location,
        name,
        aggregate,
        fields.as_text(entry.get("label") or "", f"{location}.label", 500),
        None if index is None else fields.as_count(index, f"{location}.repetition_index"),
        fields.as_count(
            entry.get("repetitions", 1), f"{location}.repetitions", MAX_MEASUREMENTS, minimum=1
        )
        if aggregate
        else 1,
    )
    if aggregate in ("", _MEDIAN, _MEAN):
        result.figures["time"] = (_time(entry, location, "real_time"), "ns")
        with rows.row(location, name):
            result.figures["cpu_time"] = (_time(entry, location, "cpu_time"), "ns")
        for counter, value in entry.items():
            if counter not in _ROW_FIELDS and isinstance(value, (int, float)):
                rows.need_room(location, len(result.figures))
                with rows.row(location, name):
                    number = fields.as_number(value, f"{location}.{counter}")
                    result.figures[counter] = (number, _UNITS.get(counter, ""))
    return result


def _parse_kind(
    entry: Mapping[str, Any], location: str, name: str, names: set[str]
) -> tuple[str, str]:
    """Return the benchmark's name, and the aggregate of its repetitions, "" for a run."""
    if (kind := entry.get("run_type")) is not None or "aggregate_name" in entry:
        fields.require(
            kind in (None, "iteration", "aggregate"),
            f"{location}.run_type",
            "expected iteration or aggregate",
        )
        if kind == "iteration":
            return name, ""
        aggregate = fields.as_text(entry.get("aggregate_name"), f"{location}.aggregate_name", 100)
        return (name if entry.get("run_name") else name.removesuffix(f"_{aggregate}")), aggregate
    if "big_o" in entry or "rms" in entry:
        return name, _COMPLEXITIES["rms" in entry]
    old = _OLD_AGGREGATE.fullmatch(name)
    if old and {f"{old[1]}_mean", f"{old[1]}_stddev"} <= names:  # it always wrote both
        return old[1], old[2]
    return name, ""


def _time(row: Mapping[str, Any], location: str, name: str) -> float:
    unit = row.get("time_unit", "ns")
    is_known = isinstance(unit, str) and unit in NANOSECONDS
    fields.require(is_known, f"{location}.time_unit", "expected ns, us, ms or s")
    value = fields.as_number(row.get(name), f"{location}.{name}")
    return fields.as_number(value * NANOSECONDS[unit], f"{location}.{name}")


# ---- runs


def _by_series(same_name: list[_Row]) -> dict[str, list[_Row]]:
    """Group rows of one name by the names of their series: if they belong to several runs, the
    label tells them apart. Repetitions of one run are numbered, and their labels may describe each
    outcome."""
    numbers = Counter((row.aggregate, row.index) for row in same_name)
    is_one_run = max(numbers.values()) == 1
    if is_one_run or len({row.label for row in same_name}) == 1:
        return {same_name[0].name: same_name}
    by_label: dict[str, list[_Row]] = {}
    for row in same_name:
        by_label.setdefault(f"{row.name} {row.label}".rstrip(), []).append(row)
    return by_label


def _add_run(rows: Rows, name: str, run: list[_Row], measured_at: datetime | None) -> None:
    kinds = [row.aggregate for row in run]
    aggregate = next((preferred for preferred in ("", _MEDIAN, _MEAN) if preferred in kinds), None)
    if aggregate is None:
        for row in run:
            rows.leave_out(
                row.location, name, f"{row.aggregate}: no repetitions, median or mean in the file"
            )
        return
    selected = [row for row in run if row.aggregate == aggregate]
    numbers = Counter(row.index for row in selected)
    is_old = not aggregate and set(numbers) == {None}  # repetitions were not numbered
    if max(numbers.values()) > 1 and not is_old:
        for row in selected:
            rows.leave_out(
                row.location, name, "this name and label occur more than once in the file"
            )
        return
    suffix = "_mean" if aggregate == _MEAN else ""
    by_metric: dict[str, list[_Row]] = {}
    for row in selected:
        for metric in row.figures:
            by_metric.setdefault(metric, []).append(row)
    for metric, measured in by_metric.items():
        first = measured[0]
        value, unit = first.figures[metric]
        figure: dict[str, Any] = {"value": value, "n": first.repetitions}
        if not aggregate:
            figure = sample_fields([row.figures[metric][0] for row in measured], first.location)
        if len(measured) == 1:  # a mean of many iterations: its variation is unknown
            figure |= {"low": None, "high": None}
        figure["better"] = "higher" if _RATE.search(metric) else better_direction(unit)
        with rows.row(first.location, name):
            figure |= {"metric": f"{metric}{suffix}", "unit": unit, "measured_at": measured_at}
            rows.add(first.location, make_point(rows.context, name, first.location, **figure))
