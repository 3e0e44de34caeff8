"""pytest-benchmark's JSON (the option ``benchmark-json``; ``stats`` of 3.x to 5.x: seconds).

The figure is the median of the rounds. With their data it has an interval; without
(``benchmark-autosave`` leaves them out) it has none, since quartiles do not bound a median.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.outcome import UserError
from scheduler.results.points import fields
from scheduler.results.points.formats.common import NANOSECONDS, of_samples, point, with_revision
from scheduler.results.points.model import Context, Point, Points

# What it writes where there is no history.
_UNVERSIONED, _UNKNOWN_BRANCH = "unversioned", "(unknown)"


def accepts(content: Any) -> bool:
    """Whether it is such a file."""
    return isinstance(content, dict) and "benchmarks" in content and "machine_info" in content


def read(content: Any, context: Context) -> Points:
    """One point a benchmark. Raises ``UserError`` naming the row and the field."""
    whole = fields.as_object(content, "document")
    context = _completed(whole, context)
    when = _moment(whole.get("datetime"), "datetime")
    facts = _facts(whole)
    rows = fields.as_list(whole["benchmarks"], "benchmarks")
    fields.need(bool(rows), "benchmarks", "there are none")
    made = []
    for place, row in enumerate(rows):
        made.append(_point(row, f"benchmarks[{place}]", context, when, facts))
    return Points(tuple(made))


def _point(
    row: Any, at: str, context: Context, when: datetime | None, facts: dict[str, Any]
) -> Point:
    one = fields.as_object(row, at)
    stats = fields.as_object(one.get("stats"), f"{at}.stats")
    name = fields.as_text(one.get("fullname") or one.get("name"), f"{at}.fullname", 500)
    factor = NANOSECONDS["s"]
    data = fields.as_list(stats.get("data") or [], f"{at}.stats.data")
    if data:
        here = f"{at}.stats.data"
        figure = of_samples(
            [fields.as_number(s, f"{here}[{n}]") * factor for n, s in enumerate(data)], here
        )
    else:
        figure = {
            "value": fields.as_number(stats.get("median"), f"{at}.stats.median") * factor,
            "n": fields.as_count(stats.get("rounds", 1), f"{at}.stats.rounds", least=1),
        }
    return point(
        context, name, at, metric="time", unit="ns", measured_at=when, conditions=facts, **figure
    )


def _completed(whole: dict[str, Any], context: Context) -> Context:
    commit = fields.as_object(whole.get("commit_info") or {}, "commit_info")
    made = _moment(commit.get("author_time") or commit.get("time"), "commit_info.time")
    name = commit.get("id")
    if name == _UNVERSIONED:
        name = None
    if name and commit.get("dirty") is True:
        name = f"{name}-dirty"
    branch = commit.get("branch")
    if not isinstance(branch, str) or branch == _UNKNOWN_BRANCH:
        branch = ""
    branch = fields.as_text(branch[:200], "commit_info.branch", 200) if branch else ""
    context = with_revision(
        context,
        name,
        revision_at=made,
        branch=context.branch or branch,
    )
    if context.device:
        return context
    machine = fields.as_object(whole.get("machine_info") or {}, "machine_info")
    processor = machine.get("cpu")
    brand = processor.get("brand_raw") if isinstance(processor, dict) else None
    device = brand or machine.get("processor") or machine.get("machine")
    return replace(context, device=fields.as_text(device or "", "machine_info.cpu.brand_raw", 200))


def _facts(whole: dict[str, Any]) -> dict[str, Any]:
    machine = fields.as_object(whole.get("machine_info") or {}, "machine_info")
    names = ("python_implementation", "python_version")
    runtime = " ".join(str(machine[name]) for name in names if machine.get(name))
    host = " ".join(str(machine[name]) for name in ("system", "release") if machine.get(name))
    found = {"runtime": runtime, "host": host}
    return {
        name: fields.as_text(text, "machine_info", 1_000) for name, text in found.items() if text
    }


def _moment(given: Any, at: str) -> datetime | None:
    if not given:
        return None
    try:
        return fields.as_moment(given, at)
    except UserError:
        if at != "datetime":  # git's own forms of a date differ with its settings
            return None
        raise
