"""The page of a change: its two sides, the differences between them, and the cause."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.query import ComparePage, compare_page
from codegen_app.tracking.models import Change, Datum
from codegen_app.tracking.queries.revision_links import RevisionLinks, revision_links
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    PointValue,
    SeriesHead,
    change_summary,
    point_value,
    series_head,
)
from codegen_app.web.row import build_row
from scheduler.track.differences import Aspect
from scheduler.track.facts import (
    ALTERNATIVES,
    HEADERS,
    INNER_LOOP,
    INSTRUCTIONS_DIGEST,
    UNIT,
    configuration_of,
)


@dataclass(frozen=True)
class RevisionFacts:
    """A revision, with the address of its source if known; ``is_trunk``: it is part of
    histories."""

    name: str
    branch: str
    repository: str
    at: datetime | None
    is_trunk: bool
    merge_base: str
    pull_request: str
    pull_request_url: str
    url: str


@dataclass(frozen=True)
class ChangeSide:
    """The point nearest to the change on one side. ``kernel`` and ``build`` are set if they are
    Kiln's own and still kept; ``address`` is the source's address as given by the sender."""

    title: str
    reading: PointValue
    measured_at: datetime
    datum_url: str
    revision: RevisionFacts
    kernel: str
    kernel_url: str
    build: int | None
    run: int | None
    run_url: str
    address: str


@dataclass(frozen=True)
class FactRow:
    """One recorded fact: its name, and its text on each side ("" if unknown)."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        return bool(self.before and self.after and self.before != self.after)


@dataclass(frozen=True)
class DifferenceRow:
    """A difference in a sentence; ``here``: at the point of the change itself, not only near it."""

    aspect: str
    sentence: str
    here: bool


@dataclass(frozen=True)
class Explanation:
    """The cause of the change by the first ``rule`` that applies; ``candidates`` if several causes
    remain, and what to measure next."""

    cause: str
    rule: str
    reasons: tuple[str, ...]
    candidates: tuple[str, ...]
    next_step: str
    at: datetime
    feeds_noise_floor: bool


@dataclass(frozen=True)
class ChangePage:
    """A change. ``facts`` begins with the differences. ``compared`` has the two builds side by side
    if both are Kiln's own and distinct; otherwise ``why_not_compared`` has the reason."""

    series: SeriesHead
    moved: ChangeSummary
    errors: float
    found_at: datetime
    withdrawn_at: datetime | None
    before: ChangeSide | None
    after: ChangeSide
    source_diff_url: str
    explained: Explanation | None
    differences: tuple[DifferenceRow, ...]
    facts: tuple[FactRow, ...]
    compared: ComparePage | None
    why_not_compared: str

    @property
    def sides(self) -> tuple[ChangeSide, ...]:
        return (self.before, self.after) if self.before else (self.after,)


def change_page(pk: int) -> ChangePage:
    """Return a change by number (3 queries, 2 more if both kernels are ours). Raises
    ``Change.DoesNotExist``."""
    change = Change.objects.select_related(
        *("series", "revision", "previous", "alert", "datum__revision", "datum__conditions"),
        *("datum__kernel", "datum__run"),
    ).get(pk=pk)
    after, unit = change.datum, change.series.unit
    before = (
        Datum.objects.trunk()
        .filter(series=change.series_id, at__lte=after.at)
        .exclude(at=after.at, pk__gte=after.pk)
        .select_related("revision", "conditions", "kernel", "run")
        .defer("samples")
        .order_by("-at", "-id")
        .first()
    )
    explanation: Mapping[str, Any] = change.explanation
    explained = None
    if change.explained_at is not None:
        explained = Explanation(
            cause=change.cause,
            rule=change.rule,
            reasons=tuple(map(str, explanation.get("reasons", ()))),
            candidates=tuple(map(str, explanation.get("candidates", ()))),
            next_step=str(explanation.get("next_step", "")),
            at=change.explained_at,
            feeds_noise_floor=bool(explanation.get("feeds_noise_floor")),
        )
    differences = [
        DifferenceRow(
            str(row.get("aspect", "")), str(row.get("sentence", "")), bool(row.get("here", True))
        )
        for row in explanation.get("differences", [])
    ]
    old = dict(fact_texts(before.conditions.facts)) if before else {}
    new = dict(fact_texts(after.conditions.facts))
    facts = [FactRow(name, old.get(name, ""), new.get(name, "")) for name in {**old, **new}]
    compared, why_not_compared = _comparison(before, after)
    links = revision_links([after.revision, before.revision if before else None])
    return build_row(
        ChangePage,
        change,
        series=series_head(change.series),
        moved=change_summary(change, unit),
        before=_side("before", before, unit, links) if before else None,
        after=_side("after", after, unit, links),
        source_diff_url=links.diff(before.revision, after.revision) if before else "",
        explained=explained,
        differences=tuple(sorted(differences, key=lambda row: not row.here)),
        facts=tuple(sorted(facts, key=lambda row: not row.differs)),
        compared=compared,
        why_not_compared=why_not_compared,
    )


def _side(title: str, datum: Datum, unit: str, links: RevisionLinks) -> ChangeSide:
    kernel, facts = datum.kernel, datum.conditions.facts
    kernel_url = kernel.get_absolute_url() if kernel else ""
    if kernel and datum.build_id:
        kernel_url += f"?build={datum.build_id}"
    address = str(facts.get("source", ""))
    return ChangeSide(
        **point_columns(datum, unit, links),
        title=title,
        datum_url=datum.get_absolute_url(),
        kernel=kernel.name if kernel else str(facts.get("kernel", "")),
        kernel_url=kernel_url,
        build=datum.build_id,
        address=address if address.startswith(("https://", "http://")) else "",
    )


def point_columns(datum: Datum, unit: str, links: RevisionLinks) -> dict[str, Any]:
    """Return what the page of a point and a side of a change share, without a query."""
    revision, run = datum.revision, datum.run
    return {
        "reading": point_value(datum, unit),
        "measured_at": datum.measured_at,
        "revision": build_row(
            RevisionFacts,
            revision,
            url=links.commit(revision),
            pull_request_url=links.pull_request(revision),
        ),
        "run": datum.run_id,
        "run_url": run.get_absolute_url() if run else "",
    }


_TITLES = {
    "toolchain_version": Aspect.COMPILER.value,
    "flags": "compiler flags",
    "driver": Aspect.DRIVER.value,
    "runtime": Aspect.RUNTIME.value,
    "host": Aspect.HOST.value,
    "kernel": "kernel",
    "source_digest": "source hash",
    "code_digest": "code object hash",
}


def fact_texts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the recorded facts of a point with their names, in a fixed order."""
    for name, title in _TITLES.items():
        if facts.get(name):
            yield title, _text(facts[name])
    if facts.get("config"):
        yield "configuration", configuration_of(facts) or _text(facts["config"])
    for name, value in _mapping(facts.get("clocks")).items():
        yield _clock_text(name, value)
    for name, value in _mapping(facts.get("readings")).items():
        title, unit = _READINGS.get(name, (name.replace("_", " "), ""))
        yield title, f"{_text(value)}{unit}"
    attributes = _mapping(facts.get("attributes"))
    for kind, count in _mapping(attributes.get(INNER_LOOP)).items():
        yield f"inner loop: {kind}", _text(count)
    for function, figures in _mapping(facts.get("resources")).items():
        for name, value in _mapping(figures).items():
            prefix = f"{function}: " if len(facts["resources"]) > 1 else ""
            yield f"{prefix}{name.replace('_', ' ')}", _text(value)
    for name, value in attributes.items():
        if name == ALTERNATIVES:
            yield "built configurations not selected", str(len(_mapping(value)))
        elif name != INNER_LOOP:
            yield _ATTRIBUTES.get(name, name.replace("_", " ")), _text(value)


_READINGS = {
    "power_w": ("power", " W"),
    "temperature_c": ("temperature", " °C"),
    "ecc_corrected": ("corrected ECC errors", ""),
    "ecc_uncorrected": ("uncorrected ECC errors", ""),
}
_ATTRIBUTES = {
    INSTRUCTIONS_DIGEST: "instruction hash",
    HEADERS: "header hash",
    **dict.fromkeys(UNIT, "device serial number"),
}


def _clock_text(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, int | float):
        return name, _text(value)
    if name.startswith("throttled_"):
        return f"throttled by {name.removeprefix('throttled_')}", f"{value:.0%} of samples"
    return name.removesuffix("_mhz").replace("_", " "), f"{value:g} MHz"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _comparison(before: Datum | None, after: Datum) -> tuple[ComparePage | None, str]:
    """Return the two builds side by side, or the reason why not (2 queries, or none)."""
    if before is None:
        return None, "No comparison: the point before the change no longer exists."
    if before.kernel is None or after.kernel is None:
        return None, (
            "No kernels to compare: Kiln has no kernel for either side. See the facts sent with the"
            " points."
            if before.kernel is after.kernel
            else "No kernels to compare: Kiln has a kernel for one side only."
        )
    builds: Sequence[int] = [key for key in (before.build_id, after.build_id) if key is not None]
    if len(builds) < 2:
        return (
            None,
            "No comparison: a build is no longer stored. The kernel pages show both sources.",
        )
    if builds[0] == builds[1]:
        return None, "Both sides ran the same build: same source, compiler and code object."
    try:
        return compare_page(builds), ""
    except Build.DoesNotExist as error:
        return None, f"Not compared: {error}."
