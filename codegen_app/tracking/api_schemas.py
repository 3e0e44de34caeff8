"""Parameters, headers and responses of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from codegen_app.tracking.compare_revisions.comparison import Grouping
from scheduler.results.points import fields, importer
from scheduler.results.points.model import REVISION_TEXTS, ImportContext
from scheduler.stats.intervals import Bounds
from scheduler.track.compared_series import CompareSettings

_MAX_LENGTHS = {"device": 200, "target": 40, "toolchain": 40, "revision": 100, **REVISION_TEXTS}

StatusName = Literal["slower", "faster", "uncertain", "unknown", "same", "new", "gone"]


class Parameters(Schema):
    """Values missing from the body. For files of other tools, at least device and revision."""

    format: str = Field(
        importer.AUTO, description=f"One of {', '.join((importer.AUTO, *importer.FORMATS))}."
    )
    device: str = Field("", description="The device model, for example “NVIDIA H200”.")
    target: str = Field("", description="The compilation target, for example “sm_90”.")
    toolchain: str = Field("", description="The compiler name without its version.")
    revision: str = Field("", description="The commit or version that was measured.")
    revision_at: str = Field(
        "", description="The time of the revision in ISO 8601; not in the future."
    )
    branch: str = Field("", description="The branch of the revision.")
    repository: str = Field("", description="The repository of the revision.")
    merge_base: str = Field(
        "", description="The revision of the trunk that the branch forked from."
    )
    merge_base_at: str = Field(
        "", description="The time of “merge_base” in ISO 8601, which may not have been measured."
    )
    pull_request: str = Field("", description="The number or URL of the pull request.")
    default_branch: str = Field(
        "",
        description="The default branch of the repository. It becomes the trunk of the repository"
        " unless a trunk is set.",
    )
    subject: str = Field("", description="The first line of the commit's message.")
    author: str = Field("", description="The author of the commit.")
    measured_at: str = Field(
        "",
        description="The time of the measurement. Default: as in the file, else now.",
    )

    def context(self, now: datetime) -> ImportContext:
        """For the importer. Raises ``UserError`` naming the parameter."""
        stated: dict[str, Any] = {
            name: fields.as_text(getattr(self, name), name, most)
            for name, most in _MAX_LENGTHS.items()
        }
        fields.check_branch(stated["default_branch"], "default_branch")
        for name in ("revision_at", "merge_base_at", "measured_at"):
            if text := getattr(self, name):
                stated[name] = fields.check_clock(fields.as_timestamp(text, name), now, name)
        return ImportContext(now=now, **stated)


class LeftOutRow(Schema):
    """A part of a file that was left out."""

    where: str
    reason: str


class Receipt(Schema):
    """The stored points. Requests with the same key get the same answer."""

    batch: int
    points: int
    series: int = Field(description="The number of series with new points.")
    new_series: int
    not_positive: int = Field(
        0,
        description="Points at or below 0. They are stored but not compared, since changes are"
        " ratios.",
    )
    branch_points: int = Field(
        0,
        description="Points of other branches than the trunk. They are shown with the history,"
        " and no changes are found in them.",
    )
    notes: list[str] = Field([], description="What needs attention, and how to mend it.")
    left_out: list[LeftOutRow]


class Problem(Schema):
    """The error in one line, with row and field."""

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
    branch_points: int = Field(
        description="Points of other branches than the trunk. They are not part of the history."
    )
    not_positive: int = Field(
        description="Points at or below 0. They are not compared, since changes are ratios."
    )
    withdrawn: int = Field(description="Withdrawn points. They are not compared.")
    suspected_n: int = Field(
        description="The number of last values that suggest a step, too few for a change; 0: none."
    )
    suspected_ratio: float | None = Field(description="These values / the level before them.")
    suspected_from: datetime | None = Field(description="The place of the first of them.")
    first_at: datetime | None
    last_at: datetime | None


class SeriesPage(Schema):
    """A page of series."""

    series: list[SeriesRow]
    next: int | None = Field(
        description="Pass this as “after” for the next page; null on the last page."
    )


class WithdrawnRow(Schema):
    """The withdrawal of a point. Withdrawn points are not compared."""

    at: datetime
    by: str | None
    reason: str


class Reason(Schema):
    """The reason of the action."""

    reason: str = Field(min_length=1, max_length=500)


class DayRow(Schema):
    """The points of a day, of which a policy deleted all but their median."""

    points: int
    low: float = Field(description="The smallest value.")
    high: float = Field(description="The largest value.")


class DatumRow(Schema):
    """A point. “at” is the time that orders the history."""

    id: int
    at: datetime
    measured_at: datetime
    value: float
    low: float | None
    high: float | None
    bounds: Bounds = Field(
        description="What “low” and “high” are: an interval, the range if n < 6, nothing if n = 1."
    )
    n: int
    samples: list[float] | None
    revision: str
    branch: str
    repository: str
    is_trunk: bool = Field(description="Whether the point is part of the history.")
    merge_base: str = Field(description="The revision of the trunk that the branch forked from.")
    pull_request: str
    source: str
    kernel: str | None
    run: int | None
    conditions: dict[str, Any] | None
    withdrawn: WithdrawnRow | None = Field(description="Null if the point is not withdrawn.")
    day: DayRow | None = Field(
        description="The points that it stands for, itself included; null if it stands for itself."
    )


class DataPage(Schema):
    """A page of points, in the order of the history."""

    data: list[DatumRow]
    next: str | None = Field(
        description="Pass this as “after” for the next page; null on the last page."
    )


class Comparing(Schema):
    """The sides to compare and the rows to return."""

    before: str = Field(
        description="A commit or version, or a prefix of one; “branch:NAME”: the newest revision of"
        " a branch; “run:NUMBER”: a tuning run; “base:NAME”: the merge base with that branch that"
        " was sent with “after”, if it was measured, else the newest revision of that branch that"
        " is older than the first revision of the “after” branch; “base:”: likewise, of the trunk."
    )
    after: str = Field(description="As “before”, without “base:”.")
    repository: str = Field(
        "", description="The repository, if several have a revision of this name."
    )
    group: Grouping = Field(Grouping.GRAPH, description="The grouping of geometric means.")
    least_effect: float = Field(
        CompareSettings().least_effect,
        ge=0,
        le=0.5,
        description="The minimum effect for slower or faster: 0.01 is 1%.",
    )
    status: StatusName | None = Field(None, description="Return only rows with this status.")
    limit: Annotated[int, Field(ge=0, le=10_000)] = Field(
        1_000, description="The maximum number of rows; largest effect first within a status."
    )


class SideRow(Schema):
    """A side: a revision or a run."""

    text: str = Field(description="The side as given in the request.")
    name: str
    branches: list[str]
    repository: str
    at: datetime | None
    run: int | None


class ComparedSeries(Schema):
    """A series on both sides. “ratio” is after / before with its 95% interval, null if unknown.
    Above 1 is slower, also for metrics where higher is better. By history, “before” is the level of
    the last “n_before” points, and “after” the median of “n_after” runs."""

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
    before: float | None = Field(description="The median in the unit of the series.")
    after: float | None = Field(description="The median in the unit of the series.")
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    q: float | None = Field(description="The p-value, corrected for the number of series.")
    method: Literal["samples", "history", ""] = Field(
        description="What the series was compared by: the samples of both sides; or, if a side has"
        " fewer than 5, the history of the trunk up to “before”. Empty if it was not compared."
    )
    expected_low: float | None = Field(
        description="By history, “after” is expected from here on, in the unit of the series."
    )
    expected_high: float | None = Field(description="The other end of the expected range.")
    rerun: int = Field(
        description="How many more measurements would settle an uncertain result; else 0."
    )
    rerun_side: Literal["before", "after", ""] = Field(description="The side to measure again.")
    why: str = Field(
        description="The cause of the change, or the reason why the status is unknown."
    )
    groups: list[str]
    origin: str = Field(description="“emulated” or “generated”; empty if measured on a device.")


class RerunRow(Schema):
    """A series to measure again, at the revision of a side."""

    series: int
    problem: str
    sizes: dict[str, int]
    target: str
    device_name: str
    toolchain: str
    metric: str
    unit: str
    revision: str
    branch: str
    repository: str
    side: Literal["before", "after"]
    runs: int = Field(description="How many more measurements are needed.")
    why: str


class GroupMean(Schema):
    """The geometric mean of the ratios of n series, with its 95% interval."""

    name: str
    ratio: float
    low: float
    high: float
    n: int


class ComparisonAnswer(Schema):
    """The comparison of two sides over all series."""

    before: SideRow
    after: SideRow
    counts: dict[str, int] = Field(description="The number of series by status, without filters.")
    judged: int = Field(
        description="The number of series that are slower, faster or the same. 0: the comparison"
        " says nothing."
    )
    compared: int = Field(description="As “judged”, for older clients.")
    rerun: list[RerunRow] = Field(
        description="Uncertain series to measure again, at most 1,000; the largest effect first."
    )
    floor: float = Field(description="The run-to-run noise as a fraction: 0.002 is 0.2%.")
    pairs: int = Field(description="The number of same-code series behind “floor”; 0 if assumed.")
    group: Grouping
    groups: list[GroupMean]
    rows: list[ComparedSeries]
    total: int = Field(description="The number of rows with the status, before “limit”.")
    url: str = Field(
        description="The page of this comparison; only the path if KILN_SITE_URL is not set."
    )
    markdown: str = Field(description="A summary for a pull request.")


class RequestRow(Schema):
    """A request to measure a revision of a series again."""

    id: int
    asked_at: datetime
    alert: int | None = Field(description="Null if it was requested for a suspected step.")
    bisection: int | None = Field(description="The bisection that needs it, if any.")
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


class SkippedRow(Schema):
    """The bisection of a skipped request: its state, and the next request if it is open."""

    bisection: int
    state: str
    next_request: int | None


class RequestsPage(Schema):
    """A page of requests."""

    requests: list[RequestRow]
    next: int | None = Field(
        description="Pass this as “after” for the next page; null on the last page."
    )


Limit = Annotated[int, Field(ge=1, le=5_000)]
