"""What all pages share: one typed value, rendered as HTML or returned as its ``.json`` view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ParamSpec, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from codegen_app.web.pagecache.cache import CachePolicy, cached
from codegen_app.web.pagecache.reader import TOKEN, is_cached_request
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.stats.intervals import bounds_of

View = Callable[..., HttpResponse]
TEXT_FILE = "text/plain; charset=utf-8"
P = ParamSpec("P")
T = TypeVar("T")
_METRIC = {field.name for field in fields(Metric)}
#: Bounds of samples, under any name; bounds of ratios belong to two sides.
_BOUNDED = ({"value", "low", "high"}, {"low_ns", "high_ns"}, {"low_us", "high_us"})
_FIGURES = {"median": "value", "low": "low", "high": "high"}


@dataclass(frozen=True)
class Crumb:
    """A breadcrumb of a page; without an address it is the page itself. The page of the bar that
    it is below comes first without being named (``templatetags/navigation.py``)."""

    text: str
    url: str = ""


def with_json_view(
    route: str, view: View, name: str, policy: CachePolicy | None = None
) -> list[URLPattern]:
    """Return the URL patterns of a page and of its JSON view; ``policy`` caches the page."""
    if policy is not None:
        view = cached(view, policy)
    json_route = f"{route}.json" if route else "overview.json"
    return [
        path(json_route, view, {"as_json": True}, name=f"{name}_json"),
        path(route, view, name=name),
    ]


def render_page(
    request: HttpRequest,
    template: str,
    data: Any,
    *,
    as_json: bool,
    title: str,
    stages: Sequence[Crumb] = (),
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render the page, or its data (a dataclass) as JSON. ``context`` is only for the template; its
    ``address`` is the form of the page's parameters, whose errors are shown."""
    if as_json:
        return JsonResponse(asdict(data, dict_factory=_with_time), json_dumps_params={"indent": 1})
    address = "/overview" if request.path == "/" else request.path
    query = request.META.get("QUERY_STRING", "")
    return render(
        request,
        template,
        {
            "page": data,
            "title": title,
            "stages": stages,
            "json_url": f"{address}.json" + (f"?{query}" if query else ""),
            **({"csrf_token": TOKEN} if is_cached_request(request) else {}),
            **context,
        },
        status=status,
    )


def get_or_404(what: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a selector reads. Raises ``Http404`` if the row does not exist."""
    try:
        return read(*args, **kwargs)
    except ObjectDoesNotExist:
        raise Http404(f"there is no {what}") from None


def download(content: str | bytes, name: str, content_type: str) -> HttpResponse:
    """Return a file to be saved under that name."""
    disposition = f'attachment; filename="{name}"'
    return HttpResponse(
        content, content_type=content_type, headers={"Content-Disposition": disposition}
    )


def sentence(line: str) -> str:
    """Format an error line as a message on a page: capitalised, with a full stop."""
    text = line[:1].upper() + line[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _with_time(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Add the time's figures beside a row's metrics, for compatibility with the first JSON views,
    and the kind of a figure's bounds; a metric of a single sample has no bounds."""
    row = dict(pairs)
    if row.keys() == _METRIC and not bounds_of(row["n"]):
        row |= {"low": None, "high": None}
    if "n" in row and any(row.keys() >= bounded for bounded in _BOUNDED):
        row["bounds"] = bounds_of(row["n"])
    if isinstance(row.get("metrics"), dict):
        time = row["metrics"].get(TIME) or dict.fromkeys(("value", "low", "high", "bounds"))
        row |= {f"{name}_ns": time[key] for name, key in _FIGURES.items()}
        row["bounds"] = time["bounds"]
    return row
