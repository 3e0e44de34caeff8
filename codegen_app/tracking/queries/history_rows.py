"""All points of a series in order, one row at a time: a history may exceed memory."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import OuterRef, Subquery

from codegen_app.tracking.models import Datum, Series, Withdrawal
from codegen_app.tracking.models.series import Source
from scheduler.stats.intervals import bounds_of

COLUMNS = (
    *("at", "measured_at", "revision", "branch", "repository", "value", "low", "high"),
    *("bounds", "n", "unit", "source", "compiler", "driver", "runtime", "host", "kernel"),
    "withdrawn",
)
_CHUNK = 2_000


def csv_rows(series: Series) -> Iterator[list[object]]:
    """Yield the cells of each point, oldest first (1 query); the last cell is the reason for a
    withdrawal, if any."""
    of_facts = [f"conditions__facts__{name}" for name in _FACTS]
    held = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
    rows = (
        Datum.objects.filter(series=series)
        .order_by("at", "id")
        .values_list(
            *("at", "measured_at", "revision__name", "revision__branch", "revision__repository"),
            *("value", "low", "high", "n", "source"),
            *of_facts,
            Subquery(held.values("reason")[:1]),
        )
        .iterator(chunk_size=_CHUNK)
    )
    unit = _text(series.unit)
    for at, measured_at, name, branch, repository, value, low, high, n, source, *facts in rows:
        yield [
            *(at.isoformat(), measured_at.isoformat()),
            *map(_text, (name, branch, repository)),
            *(value, low, high, bounds_of(n), n, unit, Source(source).label),
            *map(_text, facts),
        ]


_FACTS = ("toolchain_version", "driver", "runtime", "host", "kernel")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
