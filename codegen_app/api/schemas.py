"""What is sent to the API beside a body, and what it answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from codegen_app.selectors.compare_revisions.comparison import Grouping
from scheduler.results.points import fields, importer
from scheduler.results.points.model import ImportContext
from scheduler.stats.intervals import Bounds
from scheduler.track.compare import CompareSettings

_MAX_LENGTHS = {"device": 200, "target": 40, "toolchain": 40, "revision": 100, "branch": 200}

StatusName = Literal["slower", "faster", "unknown", "same", "new", "gone"]


class Parameters(Schema):
    """What the body does not say itself: of other tools' files device and revision at least."""

    format: str = Field(
        importer.AUTO, description=f"One of {', '.join((importer.AUTO, *importer.FORMATS))}."
    )
    device: str = Field("", description="The device's model, as “NVIDIA H200”.")
    target: str = Field("", description="The target that code was made for, as “sm_90”.")
    toolchain: str = Field("", description="The compiler's name without its version.")
    revision: str = Field("", description="The commit or version that was measured.")
    revision_at: str = Field("", description="When that was made, in ISO 8601, not in the future.")
    branch: str = Field("", description="The branch of the revision.")
    repository: str = Field("", description="Where the revision is from.")
    measured_at: str = Field(
        "", description="When it was measured, not in the future; else now or as a file says."
    )

    def context(self, now: datetime) -> ImportContext:
        """For the importer. Raises ``UserError`` naming the parameter."""
        stated: dict[str, Any] = {
            name: fields.as_text(getattr(self, name), name, most)
            for name, most in (*_MAX_LENGTHS.items(), ("repository", 300))
        }
        for name in ("revision_at", "measured_at"):
            if text := getattr(self, name):
                stated[name] = fields.check_not_future(fields.as_timestamp(text, name), now, name)
        return ImportContext(now=now, **stated)


class LeftOutRow(Schema):
    """A part of a file that has no figure."""

    where: str
    reason: str


class Receipt(Schema):
    """What was stored: the same again for the same key."""

    batch: int
    points: int
    series: int = Field(description="How many series they are of.")
    new_series: int
    not_positive: int = Field(
        0,
        description="Points at or below 0: they are stored, and not compared with others, since"
        " changes are ratios.",
    )
    left_out: list[LeftOutRow]


class Problem(Schema):
    """Why nothing was done: one line that names the row and the field."""

    error: str


class SeriesRow(Schema):
    """A series."""

    id: int
    problem: str
    sizes: dict[str, int]
    target: str
    device_name: str
    toolchain: str
    metric: str
    unit: str
    better: str
    points: int
    not_positive: int = Field(
        description="Points at or below 0: they are not compared with others, since changes are"
        " ratios."
    )
    withdrawn: int = Field(description="Points that were withdrawn: not compared either.")
    first_at: datetime | None
    last_at: datetime | None


class SeriesPage(Schema):
    """Some series, and where the next ones begin."""

    series: list[SeriesRow]
    next: int | None = Field(description="Ask with this as “after”; null at the end.")


class WithdrawnRow(Schema):
    """The withdrawal of a point, which is not compared with others."""

    at: datetime
    by: str | None
    reason: str


class Reason(Schema):
    """Why it is done."""

    reason: str = Field(min_length=1, max_length=500)


class DatumRow(Schema):
    """A point. “at” is its place in the history."""

    id: int
    at: datetime
    measured_at: datetime
    value: float
    low: float | None
    high: float | None
    bounds: Bounds = Field(
        description="What “low” and “high” are: of fewer than six samples their range, of one"
        " nothing."
    )
    n: int
    samples: list[float] | None
    revision: str
    branch: str
    repository: str
    source: str
    kernel: str | None
    run: int | None
    conditions: dict[str, Any] | None
    withdrawn: WithdrawnRow | None = Field(description="Null for a point that counts.")


class DataPage(Schema):
    """Points in the order of the history, and where the next ones begin."""

    data: list[DatumRow]
    next: str | None = Field(description="Ask with this as “after”; null at the end.")


class Comparing(Schema):
    """What is compared, and what is answered of it."""

    before: str = Field(
        description="A commit or version, or how it begins; “branch:NAME”: the newest revision of"
        " a branch; “run:NUMBER”: a tuning run; “base:NAME”: the newest revision of that branch"
        " that is older than the first one of the branch after it."
    )
    after: str = Field(description="As “before”, without “base:”.")
    repository: str = Field("", description="Of the revisions, where several have one so named.")
    group: Grouping = Field(Grouping.GRAPH, description="What geometric means are taken by.")
    least_effect: float = Field(
        CompareSettings().least_effect,
        ge=0,
        le=0.5,
        description="What counts as slower or faster: 0.01 is by more than 1%.",
    )
    status: StatusName | None = Field(None, description="Rows of this status alone.")
    limit: Annotated[int, Field(ge=0, le=10_000)] = Field(
        1_000, description="How many rows at most, the largest effect first within a status."
    )


class SideRow(Schema):
    """A side: the revision that it is, or the run."""

    text: str = Field(description="As it was asked for.")
    name: str
    branches: list[str]
    repository: str
    at: datetime | None
    run: int | None


class ComparedSeries(Schema):
    """A series on both sides. “ratio” with its 95% interval is after by before, above 1 for slower,
    also of what is better the higher it is; null where there is none."""

    series: int
    name: str
    problem: str
    sizes: dict[str, int]
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    better: str
    status: StatusName
    before: float | None = Field(description="The median in the series' unit.")
    after: float | None = Field(description="The median in the series' unit.")
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    q: float | None = Field(description="The p-value, corrected for the number of series.")
    why: str = Field(description="The cause of what moved, or why nothing can be said.")
    groups: list[str]
    origin: str = Field(description="“emulated”, “generated”, or empty: measured on a device.")


class GroupMean(Schema):
    """The geometric mean of a group's ratios with its 95% interval, of n series."""

    name: str
    ratio: float
    low: float
    high: float
    n: int


class ComparisonAnswer(Schema):
    """Two sides over all their series."""

    before: SideRow
    after: SideRow
    counts: dict[str, int] = Field(description="All series by status, whatever was asked for.")
    compared: int = Field(description="Those that are slower, faster or the same.")
    floor: float = Field(description="The noise from run to run, as a part: 0.002 is 0.2%.")
    pairs: int = Field(description="Series of the same code that it is of; 0: it is assumed.")
    group: Grouping
    groups: list[GroupMean]
    rows: list[ComparedSeries]
    total: int = Field(description="Rows of the status; “limit” may leave some out.")
    url: str = Field(
        description="The page of this comparison; its path alone where the site has no address"
        " (KILN_SITE_URL)."
    )
    markdown: str = Field(description="For a pull request.")


class RequestRow(Schema):
    """A revision of a series that should be measured again."""

    id: int
    asked_at: datetime
    alert: int
    series: int
    problem: str
    sizes: dict[str, int]
    target: str
    device_name: str
    toolchain: str
    metric: str
    unit: str
    revision: str
    revision_at: datetime | None
    branch: str
    repository: str


class RequestsPage(Schema):
    """Some requests, and where the next ones begin."""

    requests: list[RequestRow]
    next: int | None = Field(description="Ask with this as “after”; null at the end.")


Limit = Annotated[int, Field(ge=1, le=5_000)]
