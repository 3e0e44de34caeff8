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
    for name, given in content.items():
        at = one_line(name, MAX_NAME) or '""'
        with rows.row(at):
            fields.require(name not in doubled, at, "occurs more than once in the file")
            fields.as_text(name, at, 500, empty=False)
            if isinstance(given, list):
                for problem, place, measures in _variants(name, at, given, rows):
                    _add(rows, problem, place, measures, is_open=True)
            else:
                _add(rows, name, at, fields.as_object(given, at), is_open=False)
    return rows.points()


def _variants(
    name: str, at: str, entries: list[Any], rows: Rows
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, position and measures of each set of parameters."""
    fields.require(bool(entries), at, "no measures")
    found: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {}
    count = 0  # number of measures
    for number, given in enumerate(entries):
        place = f"{at}[{number}]"
        with rows.row(place):
            one = fields.as_object(given, place)
            fields.reject_unknown(one, ("parameters", "measures"), place)
            problem = name + _parameters(one.get("parameters") or {}, f"{place}.parameters")
            _, known = found.setdefault(problem, (place, {}))
            for measure, named in fields.as_object(one.get("measures"), place).items():
                values = fields.as_object(named, f"{place}.{one_line(measure, 80)}")
                count += measure not in known
                rows.need_room(place, count)
                known.setdefault(measure, {}).update(values)
    for problem, (place, measures) in found.items():
        yield problem, place, measures


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
    for measure, given in measures.items():
        place = f"{at}.{one_line(measure, 80)}"
        with rows.row(place):
            one = fields.as_object(given, place)
            if not is_open:
                fields.reject_unknown(one, (_VALUE, *_BOUNDS), place)
            metric, unit = _MEASURES.get(measure, (measure, ""))
            others = sorted(one.keys() - {_VALUE, *_BOUNDS})
            if _VALUE in one or not others:
                value = fields.as_number(one.get(_VALUE), f"{place}.{_VALUE}")
                low, high = fields.as_bounds(one, _BOUNDS, value, place)
                bounds = {} if low is None or high is None else {"low": low, "high": high}
                figure: dict[str, Any] = {"metric": metric, "unit": unit, "value": value, **bounds}
                rows.add(place, make_point(rows.context, problem, place, **figure))
            for name in others:
                value = fields.as_number(one[name], f"{place}.{one_line(name, 80)}")
                named: dict[str, Any] = {"metric": f"{metric}_{name}", "unit": unit, "value": value}
                rows.add(place, make_point(rows.context, problem, place, **named))
