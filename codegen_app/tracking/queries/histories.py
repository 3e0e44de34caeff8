"""Series, their points, and requests to measure them, as the API returns them: paged by key, so
that each page costs the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from codegen_app.tracking.models import Datum, MeasurementRequest, Series, Withdrawal
from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.stats.intervals import bounds_of

_WITHDRAWN = JSONObject(at="at", by="by__username", reason="reason")
SERIES_FILTERS = ("problem", "target", "device_name", "toolchain", "metric")
REQUEST_FILTERS = {
    "device_name": "series__device_name",
    "repository": "revision__repository",
    "branch": "revision__branch",
    "revision": "revision__name",
}
_REQUEST_SERIES = ("problem", "sizes", "target", "device_name", "toolchain", "metric", "unit")


@dataclass(frozen=True)
class Cursor:
    """The position in a history after which a page begins."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"

    @staticmethod
    def parse(text: str) -> Cursor:
        """Parse a cursor's text. Raises ``UserError``."""
        moment, _, number = text.rpartition("_")
        if not number.isascii() or not number.isdecimal() or len(number) > 18:
            raise UserError("after: use the “next” value of the previous page")
        return Cursor(fields.as_timestamp(moment, "after"), int(number))


def series_page(
    filters: Mapping[str, str], after: int, limit: int
) -> tuple[list[Series], int | None]:
    """Return series with these values of ``SERIES_FILTERS`` ("" for any), by number, and the number
    to continue after (1 query)."""
    rows = Series.objects.filter(pk__gt=after, **{k: v for k, v in filters.items() if v})
    found = list(rows.order_by("pk")[: limit + 1])
    return found[:limit], found[limit - 1].pk if len(found) > limit else None


def requests_page(
    filters: Mapping[str, str], after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return the open requests to senders with these values of ``REQUEST_FILTERS`` ("" for any), by
    number, and the number to continue after (1 query)."""
    rows = MeasurementRequest.objects.filter(
        pk__gt=after,
        answered_at__isnull=True,
        withdrawn_at__isnull=True,
        build__isnull=True,
        **{REQUEST_FILTERS[name]: value for name, value in filters.items() if value},
    )
    found = list(rows.select_related("series", "revision").order_by("pk")[: limit + 1])
    shown = [
        {
            "id": row.pk,
            "asked_at": row.created_at,
            "alert": row.alert_id,
            "bisection": row.bisection_id,
            "series": row.series_id,
            **{name: getattr(row.series, name) for name in _REQUEST_SERIES},
            "revision": row.revision.name,
            "revision_at": row.revision.at,
            "branch": row.revision.branch,
            "repository": row.revision.repository,
        }
        for row in found[:limit]
    ]
    return shown, found[limit - 1].pk if len(found) > limit else None


def data_page(
    series: int, after: Cursor | None, limit: int, *, with_samples: bool
) -> tuple[list[dict[str, Any]], Cursor | None]:
    """Return points of a series, those of branches too, in the order of its history, and the cursor
    to continue after (2 queries)."""
    rows = Datum.objects.filter(series=series)
    if after is not None:
        rows = rows.filter(Q(at__gt=after.at) | Q(at=after.at, id__gt=after.id), at__gte=after.at)
    columns = ("id", "at", "measured_at", "value", "low", "high", "n", "source", "is_trunk")
    renamed = {
        "revision": "revision__name",
        "branch": "revision__branch",
        "repository": "revision__repository",
        "merge_base": "revision__merge_base",
        "pull_request": "revision__pull_request",
        "kernel": "kernel__name",
        "run": "run_id",
    }
    if with_samples:
        renamed |= {"samples": "samples", "conditions": "conditions__facts"}
    active = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
    rows = rows.annotate(withdrawn=Subquery(active.values(row=_WITHDRAWN)[:1])).order_by("at", "id")
    of_day = {name: f"day_summary__{name}" for name in ("points", "low", "high")}
    rows_values = rows.values(*columns, *renamed.values(), *of_day.values(), "withdrawn")
    found = sorted(  # each of the two has its index
        chain(*(rows_values.filter(is_trunk=mark)[: limit + 1] for mark in (True, False))),
        key=itemgetter("at", "id"),
    )
    shown = [
        {
            **{name: row[name] for name in (*columns, "withdrawn")},
            "bounds": bounds_of(row["n"]),
            "samples": None,
            "conditions": None,
            **{name: row[column] for name, column in renamed.items()},
            "day": {name: row[column] for name, column in of_day.items()}
            if row["day_summary__points"]
            else None,
        }
        for row in found[:limit]
    ]
    last = shown[-1] if len(found) > limit else None
    return shown, Cursor(last["at"], last["id"]) if last else None
