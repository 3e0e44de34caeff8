"""Bencher's Metric Format (BMF).

Version 0 is ``{benchmark: {measure: {value, lower_value, upper_value}}}``. In version 1 a benchmark
is a list of ``{parameters, measures}``: each set of parameters is a separate series, and entries
of the same set are merged (of two with the same name the later one counts, as in Bencher). A
measure may have further values by name (``p99``), which are separate metrics.

The measure ``latency`` (nanoseconds) is the metric ``time``; ``throughput`` is operations a second,
``build-time`` seconds, ``file-size`` bytes. A custom measure has no unit in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.results.points import fields
from scheduler.results.points.formats.common import Rows, check_row_count, make_point
from scheduler.results.points.model import ImportContext, Points
from scheduler.text import MAX_NAME, one_line

_MEASURES = {
    "latency": ("time", "ns"),
    "throughput": ("throughput", "ops/s"),
    "build-time": ("build-time", "s"),
    "file-size": ("file-size", "B"),
}
_VALUE, _BOUNDS = "value", ("lower_value", "upper_value")


def accepts(content: Any) -> bool:
    """Whether a benchmark in it looks like this format, which has no marker."""
    for benchmark in content.values() if isinstance(content, dict) else ():
        if isinstance(benchmark, list):
            sets = (entry.get("measures") for entry in benchmark if isinstance(entry, dict))
            if any(isinstance(measures, dict) for measures in sets):
                return True
        measures = benchmark.values() if isinstance(benchmark, dict) else ()
        if any(isinstance(measure, dict) and _VALUE in measure for measure in measures):
            return True
    return False


def read(content: Any, context: ImportContext) -> Points:
    """Read one point per measure."""
    rows = Rows(context)
    check_row_count(
        sum(len(entries) for entries in content.values() if isinstance(entries, list)), "document"
    )
    duplicate_names = content.names if isinstance(content, fields.DuplicateKeys) else frozenset()
    for name, benchmark in content.items():
        location = one_line(name, MAX_NAME) or '""'
        with rows.row(location):
            fields.require(
                name not in duplicate_names, location, "occurs more than once in the file"
            )
            fields.as_text(name, location, 500, empty=False)
            if isinstance(benchmark, list):
                for problem, entry_location, measures in _variants(name, location, benchmark, rows):
                    _add(rows, problem, entry_location, measures, is_open=True)
            else:
                _add(rows, name, location, fields.as_object(benchmark, location), is_open=False)
    return rows.points()


def _variants(
    name: str, location: str, entries: list[Any], rows: Rows
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, position and measures of each set of parameters."""
    fields.require(bool(entries), location, "no measures")
    variants: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {}
    count = 0  # number of measures
    for number, entry in enumerate(entries):
        entry_location = f"{location}[{number}]"
        with rows.row(entry_location):
            variant = fields.as_object(entry, entry_location)
            fields.reject_unknown(variant, ("parameters", "measures"), entry_location)
            problem = name + _parameters(
                variant.get("parameters") or {}, f"{entry_location}.parameters"
            )
            _, measures_so_far = variants.setdefault(problem, (entry_location, {}))
            for measure, value_set in fields.as_object(
                variant.get("measures"), entry_location
            ).items():
                values = fields.as_object(value_set, f"{entry_location}.{one_line(measure, 80)}")
                count += measure not in measures_so_far
                rows.need_room(entry_location, count)
                measures_so_far.setdefault(measure, {}).update(values)
    for problem, (entry_location, merged) in variants.items():
        yield problem, entry_location, merged


def _parameters(parameters: Any, location: str) -> str:
    """Format `` op="read" size=16``: ordered by name; 16.0 is 16."""
    words = []
    for name, value in sorted(fields.as_object(parameters, location).items()):
        is_plain = value is None or isinstance(value, bool | str)
        number = value if is_plain else fields.as_number(value, f"{location}.{one_line(name, 80)}")
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        words.append(f" {name}={json.dumps(number, ensure_ascii=False)}")
    return "".join(words)


def _add(
    rows: Rows, problem: str, location: str, measures: Mapping[str, Any], *, is_open: bool
) -> None:
    """Add the points of a benchmark. Value names besides the known three are metrics if
    ``is_open``, else errors."""
    fields.require(bool(measures), location, "no measures")
    for measure, value_set in measures.items():
        measure_location = f"{location}.{one_line(measure, 80)}"
        with rows.row(measure_location):
            values = fields.as_object(value_set, measure_location)
            if not is_open:
                fields.reject_unknown(values, (_VALUE, *_BOUNDS), measure_location)
            metric, unit = _MEASURES.get(measure, (measure, ""))
            other_names = sorted(values.keys() - {_VALUE, *_BOUNDS})
            if _VALUE in values or not other_names:
                value = fields.as_number(values.get(_VALUE), f"{measure_location}.{_VALUE}")
                low, high = fields.as_bounds(values, _BOUNDS, value, measure_location)
                bounds = {} if low is None or high is None else {"low": low, "high": high}
                figure: dict[str, Any] = {"metric": metric, "unit": unit, "value": value, **bounds}
                rows.add(
                    measure_location, make_point(rows.context, problem, measure_location, **figure)
                )
            for name in other_names:
                value = fields.as_number(values[name], f"{measure_location}.{one_line(name, 80)}")
                other_figure: dict[str, Any] = {
                    "metric": f"{metric}_{name}",
                    "unit": unit,
                    "value": value,
                }
                rows.add(
                    measure_location,
                    make_point(rows.context, problem, measure_location, **other_figure),
                )
