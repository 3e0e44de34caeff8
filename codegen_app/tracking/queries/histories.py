"""Series and their points, as the API returns them: paged by key, so that each page costs the
same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from codegen_app.tracking.models import Datum, Series, Withdrawal
from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.stats.intervals import bounds_of

_WITHDRAWN = JSONObject(at="at", by="by__username", reason="reason")
FILTERS = ("problem", "target", "device_name", "toolchain", "metric")


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
    given: Mapping[str, str], after: int, limit: int
) -> tuple[list[Series], int | None]:
    """Return series whose columns match ``given``, by number, and the number to continue after (1
    query)."""
    rows = Series.objects.filter(pk__gt=after, **{k: v for k, v in given.items() if v})
    found = list(rows.order_by("pk")[: limit + 1])
    return found[:limit], found[limit - 1].pk if len(found) > limit else None


def data_page(
    series: int, after: Cursor | None, limit: int, *, with_samples: bool
) -> tuple[list[dict[str, Any]], Cursor | None]:
    """Return points of a series in the order of its history, and the cursor to continue after (1
    query)."""
    rows = Datum.objects.filter(series=series)
    if after is not None:
        rows = rows.filter(Q(at__gt=after.at) | Q(at=after.at, id__gt=after.id), at__gte=after.at)
    columns = ("id", "at", "measured_at", "value", "low", "high", "n", "source", "run_id")
    of_others = ("revision__name", "revision__branch", "revision__repository", "kernel__name")
    more = ("samples", "conditions__facts") if with_samples else ()
    held = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
    rows = rows.annotate(withdrawn=Subquery(held.values(row=_WITHDRAWN)[:1]))
    names = (*columns, *of_others, *more, "withdrawn")
    found = list(rows.order_by("at", "id").values(*names)[: limit + 1])
    shown = [_api_row(row) for row in found[:limit]]
    last = shown[-1] if len(found) > limit else None
    return shown, Cursor(last["at"], last["id"]) if last else None


def _api_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: value for name, value in row.items() if "__" not in name},
        "bounds": bounds_of(row["n"]),
        "revision": row["revision__name"],
        "branch": row["revision__branch"],
        "repository": row["revision__repository"],
        "kernel": row["kernel__name"],
        "run": row["run_id"],
        "samples": row.get("samples"),
        "conditions": row.get("conditions__facts"),
    }
