"""What every page shares: one typed value, shown as HTML or handed out as its ``.json`` twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ParamSpec, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from codegen_app.pagecache.cache import CachePolicy, cached
from codegen_app.pagecache.reader import TOKEN, is_cached_request
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.stats.intervals import bounds_of

View = Callable[..., HttpResponse]
P = ParamSpec("P")
T = TypeVar("T")
_METRIC = {field.name for field in fields(Metric)}
#: Bounds of samples, however they are called; those of ratios are of two sides.
_BOUNDED = ({"value", "low", "high"}, {"low_ns", "high_ns"}, {"low_us", "high_us"})
_FIGURES = {"median": "value", "low": "low", "high": "high"}


@dataclass(frozen=True)
class Crumb:
    """One step of where a page's subject comes from; without an address it is the page itself."""

    text: str
    url: str = ""


def with_json_view(
    route: str, view: View, name: str, how: CachePolicy | None = None
) -> list[URLPattern]:
    """A page's address and that of its JSON; ``how`` says how its pages are kept, if they are."""
    if how is not None:
        view = cached(view, how)
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
    **extra: Any,
) -> HttpResponse:
    """The page, or its data (a dataclass) as JSON. ``extra`` is for the template alone; of that,
    ``address`` is the form of the page's parameters, whose errors are shown."""
    if as_json:
        return JsonResponse(asdict(data, dict_factory=_with_time), json_dumps_params={"indent": 1})
    return render(
        request,
        template,
        {
            "page": data,
            "title": title,
            "stages": stages,
            "json_url": _json_url(request),
            **({"csrf_token": TOKEN} if is_cached_request(request) else {}),
            **extra,
        },
        status=status,
    )


def get_or_404(what: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a selector reads; a page that is not there where its row is not."""
    try:
        return read(*args, **kwargs)
    except ObjectDoesNotExist:
        raise Http404(f"there is no {what}") from None


def sentence(line: str) -> str:
    """A line of an error as a message on a page: with a capital and a full stop."""
    text = line[:1].upper() + line[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _with_time(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The time's figures beside the metrics of a row too, where the first pages had them; what the
    bounds of a figure are, of which a metric of a single sample has none."""
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


def _json_url(request: HttpRequest) -> str:
    address = "/overview" if request.path == "/" else request.path
    query = request.META.get("QUERY_STRING", "")
    return f"{address}.json" + (f"?{query}" if query else "")
