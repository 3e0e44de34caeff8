"""pytest-benchmark's JSON (the option ``benchmark-json``; ``stats`` of 3.x to 5.x: seconds).

The figure is the median of the rounds. It has an interval only if the file includes the rounds'
data (``benchmark-autosave`` omits them), since quartiles do not bound a median.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.results.points.formats.common import (
    NANOSECONDS,
    Rows,
    benchmarks,
    make_point,
    sample_fields,
)
from scheduler.results.points.model import MAX_MEASUREMENTS, ImportContext, Point, Points

# The values that it writes without a version history.
_UNVERSIONED, _UNKNOWN_BRANCH = "unversioned", "(unknown)"
#: A processor's name: py-cpuinfo's key since version 6 and before; ARM uses the second.
_PROCESSOR = ("brand_raw", "brand", "hardware_raw", "hardware")
_FACTS = {
    "runtime": ("python_implementation", "python_version"),
    "host": ("system", "release"),
}


def read(content: Any, context: ImportContext) -> Points:
    """Read one point per benchmark. Raises ``UserError`` naming the field for errors in all
    rows."""
    document = fields.as_object(content, "document")
    machine = fields.as_object(document.get("machine_info") or {}, "machine_info")
    context = _with_commit(document, context)
    if not context.device:
        context = replace(context, device=_device(machine))
    rows = Rows(context)
    measured_at = _moment(document.get("datetime"), "datetime", context)
    facts = {}
    for fact, names in _FACTS.items():
        texts = [part for name in names if isinstance(part := machine.get(name), str) and part]
        if texts:
            facts[fact] = fields.as_text(" ".join(texts), "machine_info", 1_000)
    for location, row in benchmarks(document):
        with rows.row(location, _name(row)):
            rows.add(location, _point(row, location, rows.context, measured_at, facts))
    return rows.points()


def _name(row: Any) -> Any:
    return (row.get("fullname") or row.get("name")) if isinstance(row, dict) else ""


def _point(
    row: Any,
    location: str,
    context: ImportContext,
    measured_at: datetime | None,
    facts: dict[str, Any],
) -> Point:
    benchmark = fields.as_object(row, location)
    name = fields.as_text(_name(benchmark), f"{location}.fullname", 500)
    fields.require(
        bool(benchmark.get("stats")), f"{location}.stats", "missing: the benchmark may have failed"
    )
    stats = fields.as_object(benchmark["stats"], f"{location}.stats")
    factor = NANOSECONDS["s"]
    data = fields.as_list(stats.get("data") or [], f"{location}.stats.data")
    if data:
        data_at = f"{location}.stats.data"
        figure = sample_fields(fields.as_numbers(data, data_at), data_at, factor)
    else:
        figure = {
            "value": fields.as_number(stats.get("median"), f"{location}.stats.median") * factor,
            "n": fields.as_count(
                stats.get("rounds", 1), f"{location}.stats.rounds", MAX_MEASUREMENTS, minimum=1
            ),
        }
    return make_point(
        context,
        name,
        location,
        metric="time",
        unit="ns",
        measured_at=measured_at,
        conditions=facts | _path(benchmark),
        **figure,
    )


def _path(benchmark: dict[str, Any]) -> dict[str, str]:
    """Return the file of the benchmark, which its full name begins with."""
    path, separator, _ = str(benchmark.get("fullname") or "").partition("::")
    return {"path": path} if path and separator else {}


def _with_commit(document: dict[str, Any], context: ImportContext) -> ImportContext:
    """Return the context with the commit and branch in the file, where none was given."""
    commit = fields.as_object(document.get("commit_info") or {}, "commit_info")
    moment = _moment(commit.get("author_time") or commit.get("time"), "commit_info.time", context)
    name = commit.get("id")
    if name == _UNVERSIONED:
        name = None
    if isinstance(name, str) and name and commit.get("dirty") is True:
        name = f"{name}-dirty"
    branch = commit.get("branch")
    if not isinstance(branch, str) or branch == _UNKNOWN_BRANCH:
        branch = ""
    branch = fields.as_text(branch[:200], "commit_info.branch", 200) if branch else ""
    if context.revision or not isinstance(name, str) or not name:
        return context
    revision = fields.as_text(name, "revision", 100)
    branch = context.branch or branch
    return replace(context, revision=revision, revision_at=moment, branch=branch)


def _device(machine: dict[str, Any]) -> str:
    """Return the processor's name; without one the host's, since machines of one architecture are
    different devices."""
    cpu = machine.get("cpu")
    names = [(f"cpu.{name}", cpu.get(name)) for name in _PROCESSOR if isinstance(cpu, dict)]
    if " " in str(machine.get("processor")):  # on Windows; other systems give an architecture
        names.append(("processor", machine.get("processor")))
    names.append(("node", machine.get("node")))
    for name, text in names:
        if isinstance(text, str) and text.strip():
            return fields.as_text(text, f"machine_info.{name}", 200)
    return ""


def _moment(value: Any, location: str, context: ImportContext) -> datetime | None:
    if not value:
        return None
    try:
        moment = fields.as_timestamp(value, location)
    except UserError:
        if location != "datetime":  # git's date formats depend on its settings
            return None
        raise
    return fields.check_clock(moment, context.now, location)
