"""Files of a history: all its points as CSV, and plots to embed in other pages."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import chain
from operator import itemgetter
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_cache_control

from codegen_app.accounts import embedding
from codegen_app.tracking.models import Datum, Series, Source, Withdrawal
from codegen_app.tracking.pages.history import plots
from codegen_app.tracking.pages.history.form import EmbedForm
from codegen_app.web import delimited
from codegen_app.web.page import get_or_404
from scheduler.stats.intervals import bounds_of

PICTURE_MAX_AGE_S = 300
# A plot runs nothing, loads nothing and is isolated from our pages, wherever it is opened.
_POLICY = "default-src 'none'; sandbox"
_FACTS = ("toolchain_version", "driver", "runtime", "host", "kernel")
_COLUMNS = (
    *("at", "measured_at", "revision", "branch", "repository", "history", "merge_base"),
    *("pull_request", "value", "low", "high"),
    *("bounds", "n", "unit", "source", "compiler", "driver", "runtime", "host", "kernel"),
    *("withdrawn", "day_points", "day_low", "day_high"),
)
_CHUNK = 2_000


def series_csv(_: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Every point, oldest first, streamed from the database."""
    series = get_object_or_404(Series, pk=pk)
    return StreamingHttpResponse(
        delimited.format_rows(chain([_COLUMNS], _csv_rows(series)), delimited.CSV),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="series-{pk}.csv"'},
    )


def _csv_rows(series: Series) -> Iterator[list[object]]:
    """Yield the cells of each point, oldest first (2 queries), one row at a time: a history may
    exceed memory. The last cells are the reason for a withdrawal, and the
    points of its day that it stands for, if any."""
    active = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
    rows = (
        Datum.objects.filter(series=series)
        .order_by("at", "id")
        .values_list(
            *("at", "id", "measured_at"),
            *("revision__name", "revision__branch", "revision__repository"),
            *("is_trunk", "revision__merge_base", "revision__pull_request"),
            *("value", "low", "high", "n", "source"),
            *(f"conditions__facts__{name}" for name in _FACTS),
            Subquery(active.values("reason")[:1]),
            *(f"day_summary__{name}" for name in ("points", "low", "high")),
        )
    )
    in_order = heapq.merge(  # each of the two has its index
        *(rows.filter(is_trunk=mark).iterator(chunk_size=_CHUNK) for mark in (True, False)),
        key=itemgetter(0, 1),
    )
    for at, _, measured_at, name, branch, repository, *more in in_order:
        is_trunk, merge_base, pull_request, value, low, high, n, source, *facts = more[:-3]
        yield [
            *(at.isoformat(), measured_at.isoformat(), name, branch, repository),
            *("trunk" if is_trunk else "branch", merge_base, pull_request),
            *(value, low, high, bounds_of(n), n, series.unit, Source(source).label),
            *(fact if isinstance(fact, str) else "" for fact in facts),
            *more[-3:],
        ]


def _embeddable(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Serve a plot to holders of its key and to readers of the site; others must log in. Shared
    caches keep only what needs no login."""

    @wraps(view)
    def answer(request: HttpRequest, pk: int) -> HttpResponse:
        is_public = embedding.has_series_key(request, pk)
        if not is_public and not embedding.may_see(request):
            return redirect_to_login(request.get_full_path())
        response = view(request, pk)
        scope: dict[str, Any] = {"public": True} if is_public else {"private": True}
        patch_cache_control(response, max_age=PICTURE_MAX_AGE_S, **scope)
        return response

    return login_not_required(answer)


@_embeddable
def series_plot(request: HttpRequest, pk: int) -> HttpResponse:
    """The history as a plot; ``?theme=dark`` for dark pages."""
    address = EmbedForm(request.GET)
    data = get_or_404(f"series {pk}", plots.plot_data, pk)
    return _picture(plots.plot(data, address.text("theme") or "light"))


@_embeddable
def series_badge(request: HttpRequest, pk: int) -> HttpResponse:
    """The latest value and the change of the last ``?days=30``."""
    address = EmbedForm(request.GET)
    days = min(address.number("days") or plots.DAYS, plots.MAX_DAYS)
    data = get_or_404(f"series {pk}", plots.plot_data, pk)
    return _picture(plots.badge(data, address.text("theme") or "light", days))


def _picture(svg: str) -> HttpResponse:
    answer = HttpResponse(svg, content_type="image/svg+xml; charset=utf-8")
    answer.headers["Content-Security-Policy"] = _POLICY
    answer.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return answer
