"""``/api/v1``: results in, series out; alerts, points and thresholds are in modules beside this
one. Addresses, answers and what each refuses."""

from __future__ import annotations

import json
from functools import cache, partial
from importlib import resources
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import NinjaAPI, Query
from ninja.errors import AuthenticationError, HttpError, ValidationError

from codegen_app.accounts import idempotency, tokens
from codegen_app.accounts.api_authentication import ScopeError, TokenAuth, token_of
from codegen_app.accounts.models import Scope
from codegen_app.remote import leases, sessions
from codegen_app.remote.api import router as worker_router
from codegen_app.site.api.alerts import router as alerts_router
from codegen_app.site.api.checks import (
    READ,
    REFUSALS,
    ROW_REFUSALS,
    HeaderError,
    NotFoundError,
    OwnerError,
    check_parameters,
    get_series,
    idempotency_key,
    parse_cursor,
)
from codegen_app.site.api.points import router as points_router
from codegen_app.site.api.rules import router as rules_router
from codegen_app.site.api.thresholds import router as thresholds_router
from codegen_app.tracking.api_schemas import (
    Comparing,
    ComparisonAnswer,
    DataPage,
    Limit,
    Parameters,
    Problem,
    Reason,
    Receipt,
    RequestsPage,
    SeriesPage,
    SeriesRow,
    SkippedRow,
)
from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.compare_revisions.comparison import Grouping, compare_sides
from codegen_app.tracking.compare_revisions.sides import comparison_url
from codegen_app.tracking.models import MeasurementRequest
from codegen_app.tracking.queries import histories
from codegen_app.tracking.services import ingest
from codegen_app.web.addresses import absolute_url
from scheduler.errors import MachineError, UserError
from scheduler.results import points
from scheduler.text import one_line
from scheduler.track.compared_series import CompareSettings

api = NinjaAPI(
    title="Kiln",
    version="1",
    description=(
        "Upload results in batches, read series with their points, and triage alerts. A batch is"
        " stored as a whole or not at all. Authenticate with “Authorization: Bearer TOKEN”."
    ),
    docs_url=None,
    openapi_url=None,
    urls_namespace="api-v1",
)


api.add_router("", alerts_router)
api.add_router("", points_router)
api.add_router("", thresholds_router)
api.add_router("", rules_router)
api.add_router("/worker", worker_router)


class TooLargeError(Exception):
    """More bytes than an address takes."""


@cache
def point_schema() -> dict[str, Any]:
    """The JSON schema of points, whose parts are among OpenAPI's components."""
    text = resources.files(points).joinpath("schema.json").read_text(encoding="utf-8")
    schema = json.loads(text.replace("#/$defs/", "#/components/schemas/"))
    return {name: part for name, part in schema.items() if name != "$schema"}


_BODY = {
    "parameters": [
        {
            "name": idempotency.HEADER,
            "in": "header",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": idempotency.MAX_KEY_LENGTH},
            "description": (
                "A unique string per batch. Repeating a batch with its key is safe: it is stored"
                " once and gets the same answer. Another batch with that key is a conflict (409)."
            ),
        }
    ],
    "requestBody": {
        "required": True,
        "description": (
            "Points in Kiln's format, an unmodified file of pytest-benchmark, Google Benchmark or"
            " Bencher (BMF), or Inductor output with AUTOTUNE blocks."
        ),
        "content": {
            "application/json": {
                "schema": {k: v for k, v in point_schema().items() if k != "$defs"}
            },
            "text/plain": {"schema": {"type": "string"}},
        },
    },
}


@api.post(
    "/results",
    url_name="api_results",
    auth=TokenAuth(Scope.INGEST),
    response={200: Receipt, **REFUSALS, 400: Problem, 409: Problem, 413: Problem},
    summary="Upload a batch of results",
    openapi_extra=_BODY,
)
def send_results(request: HttpRequest, parameters: Query[Parameters]) -> dict[str, Any]:
    """Store all points of the body, or none, and queue their series for change detection.

    The history is ordered by the time of the revision if it is known, else by the time of the
    measurement. Re-measuring a revision later does not change its position.
    """
    check_parameters(request, Parameters.model_fields)
    key = idempotency_key(request, required=True)
    limit = settings.API_BODY_MAX_BYTES
    body = bytes(request.read(limit + 1))
    if len(body) > limit:
        raise TooLargeError(f"a request has at most {limit} bytes: split the batch")
    return ingest.receive(
        token_of(request), key, body, parameters.context(timezone.now()), parameters.model_dump()
    )


@api.get(
    "/series",
    url_name="api_series",
    auth=READ,
    response={200: SeriesPage, **REFUSALS},
    summary="List series",
)
def list_series(
    request: HttpRequest,
    problem: str = "",
    target: str = "",
    device_name: str = "",
    toolchain: str = "",
    metric: str = "",
    after: int = 0,
    limit: Limit = 1_000,
) -> dict[str, Any]:
    """List series, filtered by problem, target, device, toolchain and metric."""
    check_parameters(request, (*histories.SERIES_FILTERS, "after", "limit"))
    values = (problem, target, device_name, toolchain, metric)
    rows, following = histories.series_page(
        dict(zip(histories.SERIES_FILTERS, values, strict=True)), parse_cursor(after), limit
    )
    return {"series": rows, "next": following}


@api.get(
    "/requests",
    url_name="api_requests",
    auth=READ,
    response={200: RequestsPage, **REFUSALS},
    summary="List requests for re-measurement",
)
def list_requests(
    request: HttpRequest,
    device_name: str = "",
    repository: str = "",
    branch: str = "",
    revision: str = "",
    after: int = 0,
    limit: Limit = 1_000,
) -> dict[str, Any]:
    """List open requests of alerts. The first uploaded point of the series at the revision that was
    measured after the request closes it."""
    check_parameters(request, (*histories.REQUEST_FILTERS, "after", "limit"))
    values = (device_name, repository, branch, revision)
    rows, following = histories.requests_page(
        dict(zip(histories.REQUEST_FILTERS, values, strict=True)), parse_cursor(after), limit
    )
    return {"requests": rows, "next": following}


@api.post(
    "/requests/{int:pk}/skip",
    url_name="api_skip_request",
    auth=TokenAuth(Scope.INGEST),
    response={200: SkippedRow, **ROW_REFUSALS},
    summary="Skip a revision of a bisection",
)
def skip_request(request: HttpRequest, pk: int, body: Reason) -> dict[str, Any]:
    """State that the requested revision cannot be measured; the bisection requests another one."""
    check_parameters(request, ())
    row = MeasurementRequest.objects.filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise NotFoundError(f"there is no request {pk}")
    bisection = walk.skip(row, body.reason, token_of(request).owner)
    following = bisection.requests.filter(answered_at=None, withdrawn_at=None).first()
    return {
        "bisection": bisection.pk,
        "state": bisection.state,
        "next_request": following.pk if following else None,
    }


@api.get(
    "/series/{int:pk}",
    url_name="api_one_series",
    auth=READ,
    response={200: SeriesRow, **REFUSALS, 404: Problem},
    summary="Get a series",
)
def one_series(request: HttpRequest, pk: int) -> Any:  # noqa: ARG001
    """Return the identity of a series and its number of points."""
    return get_series(pk)


@api.get(
    "/series/{int:pk}/data",
    url_name="api_data",
    auth=READ,
    response={200: DataPage, **REFUSALS, 404: Problem},
    summary="List the points of a series",
)
def series_data(
    request: HttpRequest,
    pk: int,
    after: str = "",
    limit: Limit = 1_000,
    samples: bool = False,
) -> dict[str, Any]:
    """List points in the order of the history. With “samples”, also return their conditions."""
    check_parameters(request, ("after", "limit", "samples"))
    get_series(pk)
    place = histories.Cursor.parse(after) if after else None
    rows, following = histories.data_page(pk, place, limit, with_samples=samples)
    return {"data": rows, "next": str(following) if following else None}


@api.get(
    "/compare",
    url_name="api_compare",
    auth=READ,
    response={200: ComparisonAnswer, **REFUSALS},
    summary="Compare two revisions, branches or runs",
)
def compare(request: HttpRequest, parameters: Query[Comparing]) -> dict[str, Any]:
    """Compare all series: slower, faster, uncertain, same, new, gone or unknown.

    If a side has fewer than 5 samples of a series, the trunk's history up to “before” decides.
    A side that does not exist or is ambiguous is an error (422), which lists the candidates.
    """
    check_parameters(request, Comparing.model_fields)
    effect = CompareSettings(least_effect=parameters.least_effect)
    comparison = compare_sides(
        parameters.before, parameters.after, parameters.repository, parameters.group, effect
    )
    rows = comparison.select(parameters.status or "")
    query = {"group": parameters.group.value} if parameters.group is not Grouping.GRAPH else {}
    if parameters.least_effect != CompareSettings().least_effect:
        query["least_effect"] = str(parameters.least_effect)
    address = comparison_url(
        parameters.before, parameters.after, repository=parameters.repository, **query
    )
    url = absolute_url(address)
    return {
        "before": comparison.before,
        "after": comparison.after,
        "counts": comparison.counts,
        "judged": comparison.comparison.compared,
        "compared": comparison.comparison.compared,
        "rerun": comparison.reruns(),
        "floor": comparison.comparison.floor,
        "pairs": comparison.comparison.pairs,
        "group": comparison.grouping,
        "groups": comparison.comparison.groups,
        "rows": comparison.shown(rows[: parameters.limit]),
        "total": len(rows),
        "url": url,
        "markdown": comparison.markdown(url),
    }


def _answer(request: HttpRequest, status: int, line: str) -> HttpResponse:
    return api.create_response(request, {"error": one_line(line, 1_000)}, status=status)


def _error_response(request: HttpRequest, error: Any, status: int) -> HttpResponse:
    return _answer(request, status, str(error))


for _kind, _status in (
    (UserError, 422),
    (MachineError, 503),
    (HeaderError, 400),
    (TooLargeError, 413),
    (NotFoundError, 404),
    (ScopeError, 403),
    (OwnerError, 403),
    (leases.UnknownFileError, 404),
    (leases.LeaseOverError, 409),
    (sessions.SessionError, 409),
):
    api.add_exception_handler(_kind, partial(_error_response, status=_status))


@api.exception_handler(idempotency.KeyReusedError)
def _key_reused(request: HttpRequest, _: Exception) -> HttpResponse:
    line = f"{idempotency.HEADER}: the key was used for another request: use a new key for each"
    return _answer(request, 409, line)


@api.exception_handler(tokens.RateError)
def _rate_limited(request: HttpRequest, error: Any) -> HttpResponse:
    answer = _answer(request, 429, str(error))
    answer.headers["Retry-After"] = str(error.seconds)
    return answer


@api.exception_handler(AuthenticationError)
def _not_found(request: HttpRequest, _: Exception) -> HttpResponse:
    line = "Authorization: expected a valid API token, as “Bearer kiln_…”"
    answer = _answer(request, 401, line)
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


@api.exception_handler(HttpError)
def _unreadable(request: HttpRequest, error: Any) -> HttpResponse:
    return _answer(request, error.status_code, str(error))


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    first = error.errors[0]
    where = ".".join(str(part) for part in first["loc"][1:] if part != "parameters")
    return _answer(request, 422, f"{where}: {first['msg']}")
