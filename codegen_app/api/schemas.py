"""What is sent to the API beside a body, and what it answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from scheduler.results.points import fields, importer
from scheduler.results.points.model import Context

_MOST = {"device": 200, "target": 40, "toolchain": 40, "revision": 100, "branch": 200}


class Parameters(Schema):
    """What the body does not say itself: of other tools' files device and revision at least."""

    format: str = Field(
        importer.AUTO, description=f"One of {', '.join((importer.AUTO, *importer.FORMATS))}."
    )
    device: str = Field("", description="The device's model, as “NVIDIA H200”.")
    target: str = Field("", description="The target that code was made for, as “sm_90”.")
    toolchain: str = Field("", description="The compiler's name without its version.")
    revision: str = Field("", description="The commit or version that was measured.")
    revision_at: str = Field("", description="When that was made, in ISO 8601.")
    branch: str = Field("", description="The branch of the revision.")
    repository: str = Field("", description="Where the revision is from.")
    measured_at: str = Field("", description="When it was measured; else now, or what a file says.")

    def context(self, now: datetime) -> Context:
        """For the importer. Raises ``UserError`` naming the parameter."""
        stated: dict[str, Any] = {
            name: fields.as_text(getattr(self, name), name, most)
            for name, most in (*_MOST.items(), ("repository", 300))
        }
        for name in ("revision_at", "measured_at"):
            if text := getattr(self, name):
                stated[name] = fields.as_moment(text, name)
        return Context(now=now, **stated)


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
    first_at: datetime | None
    last_at: datetime | None


class SeriesPage(Schema):
    """Some series, and where the next ones begin."""

    series: list[SeriesRow]
    next: int | None = Field(description="Ask with this as “after”; null at the end.")


class DatumRow(Schema):
    """A point. “at” is its place in the history."""

    id: int
    at: datetime
    measured_at: datetime
    value: float
    low: float | None
    high: float | None
    n: int
    samples: list[float] | None
    revision: str
    branch: str
    repository: str
    source: str
    kernel: str | None
    run: int | None
    conditions: dict[str, Any] | None


class DataPage(Schema):
    """Points in the order of the history, and where the next ones begin."""

    data: list[DatumRow]
    next: str | None = Field(description="Ask with this as “after”; null at the end.")


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
