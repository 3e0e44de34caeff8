"""Bencher's Metric Format (BMF).

Version 0 is ``{benchmark: {measure: {value, lower_value, upper_value}}}``. In version 1 a benchmark
is a list of ``{parameters, measures}``: each set of parameters is a series of its own, and entries
of the same set are merged (of two with the same name the later one counts, as in Bencher). A
measure may have further values by name (``p99``), which are metrics of their own.

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
    """Whether a benchmark in it looks like this format, which has no marker of its own."""
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
    check_row_count(sum(len(one) for one in content.values() if isinstance(one, list)), "document")
    doubled = content.names if isinstance(content, fields.DuplicateKeys) else frozenset()
    for name, benchmark in content.items():
        at = one_line(name, MAX_NAME) or '""'
        with rows.row(at):
            fields.require(name not in doubled, at, "occurs more than once in the file")
            fields.as_text(name, at, 500, empty=False)
            if isinstance(benchmark, list):
                for problem, place, measures in _variants(name, at, benchmark, rows):
                    _add(rows, problem, place, measures, is_open=True)
            else:
                _add(rows, name, at, fields.as_object(benchmark, at), is_open=False)
    return rows.points()


def _variants(
    name: str, at: str, entries: list[Any], rows: Rows
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, position and measures of each set of parameters."""
    fields.require(bool(entries), at, "no measures")
    variants: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {}
    count = 0  # number of measures
    for number, entry in enumerate(entries):
        entry_at = f"{at}[{number}]"
        with rows.row(entry_at):
            variant = fields.as_object(entry, entry_at)
            fields.reject_unknown(variant, ("parameters", "measures"), entry_at)
            problem = name + _parameters(variant.get("parameters") or {}, f"{entry_at}.parameters")
            _, known = variants.setdefault(problem, (entry_at, {}))
            for measure, named in fields.as_object(variant.get("measures"), entry_at).items():
                values = fields.as_object(named, f"{entry_at}.{one_line(measure, 80)}")
                count += measure not in known
                rows.need_room(entry_at, count)
                known.setdefault(measure, {}).update(values)
    for problem, (entry_at, measures) in variants.items():
        yield problem, entry_at, measures


def _parameters(parameters: Any, at: str) -> str:
    """Format `` op="read" size=16``: ordered by name; 16.0 is 16."""
    words = []
    for name, value in sorted(fields.as_object(parameters, at).items()):
        is_plain = value is None or isinstance(value, bool | str)
        number = value if is_plain else fields.as_number(value, f"{at}.{one_line(name, 80)}")
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        words.append(f" {name}={json.dumps(number, ensure_ascii=False)}")
    return "".join(words)


def _add(rows: Rows, problem: str, at: str, measures: Mapping[str, Any], *, is_open: bool) -> None:
    """Add the points of a benchmark. Value names besides the known three are metrics if
    ``is_open``, else errors."""
    fields.require(bool(measures), at, "no measures")
    for measure, value_set in measures.items():
        measure_at = f"{at}.{one_line(measure, 80)}"
        with rows.row(measure_at):
            values = fields.as_object(value_set, measure_at)
            if not is_open:
                fields.reject_unknown(values, (_VALUE, *_BOUNDS), measure_at)
            metric, unit = _MEASURES.get(measure, (measure, ""))
            others = sorted(values.keys() - {_VALUE, *_BOUNDS})
            if _VALUE in values or not others:
                value = fields.as_number(values.get(_VALUE), f"{measure_at}.{_VALUE}")
                low, high = fields.as_bounds(values, _BOUNDS, value, measure_at)
                bounds = {} if low is None or high is None else {"low": low, "high": high}
                figure: dict[str, Any] = {"metric": metric, "unit": unit, "value": value, **bounds}
                rows.add(measure_at, make_point(rows.context, problem, measure_at, **figure))
            for name in others:
                value = fields.as_number(values[name], f"{measure_at}.{one_line(name, 80)}")
                named: dict[str, Any] = {"metric": f"{metric}_{name}", "unit": unit, "value": value}
                rows.add(measure_at, make_point(rows.context, problem, measure_at, **named))
