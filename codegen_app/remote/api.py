"""``/api/v1/worker``: for workers without the database. Each asks; nothing asks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from ninja import Router

from codegen_app.accounts.api_authentication import TokenAuth, token_of
from codegen_app.accounts.models import Scope
from codegen_app.platform import artifacts, files
from codegen_app.remote import build_requests, dispatch, leases, replay, results, sessions
from codegen_app.remote.schemas import (
    Asking,
    BuildsAnswer,
    Empty,
    Fine,
    Finish,
    GivingUp,
    Hello,
    Progress,
    ReplyAnswer,
    WelcomeAnswer,
    WorkAnswer,
)
from codegen_app.tracking.api_schemas import Problem
from codegen_app.workers.models import Worker
from scheduler.agent.protocol import SESSION_HEADER, Work, as_json
from scheduler.errors import UserError

router = Router(auth=TokenAuth(Scope.WORKER), tags=["worker"])
Converted = TypeVar("Converted")
_BYTES = "application/octet-stream"
_REFUSALS = dict.fromkeys((400, 401, 403, 409, 422, 429, 503), Problem)
_SESSION = {
    "parameters": [
        {
            "name": SESSION_HEADER,
            "in": "header",
            "required": True,
            "schema": {"type": "string", "maxLength": 100},
            "description": "The session returned by “hello”.",
        }
    ]
}


@router.post(
    "/hello",
    url_name="api_worker_hello",
    response={200: WelcomeAnswer, **_REFUSALS},
    summary="Join as the worker of the token",
)
def hello(request: HttpRequest, given: Hello) -> dict[str, Any]:
    """Start a session. It replaces an earlier session of the same worker."""
    return _json(sessions.hello(token_of(request), given.model_dump()))


@router.post(
    "/lease",
    url_name="api_worker_lease",
    response={200: WorkAnswer, **_REFUSALS},
    summary="Take the next task",
    openapi_extra=_SESSION,
)
def lease(request: HttpRequest, given: Empty) -> dict[str, Any]:  # noqa: ARG001
    """Lease the next task. The answer is immediate. Repeated requests return the same task until it
    is finished."""
    worker = _worker(request)
    leased = leases.acquire(worker)
    task = again = None
    if leased is not None and leased.task is not None:
        task = dispatch.task_of(leased)
    elif leased is not None:
        again = replay.remeasurement_task(leased)
    return _json(Work(*leases.current_control(worker), settings.WORKER_POLL_S, task, again))


@router.get(
    "/leases/{str:key}/files/{str:digest}",
    url_name="api_worker_file",
    response={200: None, **_REFUSALS, 404: Problem},
    summary="Download a file of the leased task",
    openapi_extra=_SESSION,
)
def file(request: HttpRequest, key: str, digest: str) -> HttpResponseBase:
    """Return the file of the graph, or the library of a kernel."""
    leased = leases.get_active(_worker(request), key)
    is_task = leased.task is not None
    artifact = dispatch.file_of(leased, digest) if is_task else replay.file_of(leased, digest)
    try:
        if artifact.path.endswith(files.COMPRESSED):
            return HttpResponse(artifacts.read(artifact), content_type=_BYTES)
        return FileResponse(files.open_file(artifact.path, artifact.digest), content_type=_BYTES)
    except files.MissingFileError as error:
        if is_task:
            raise dispatch.recover_from_missing_file(leased, digest, str(error)) from None
        raise leases.UnknownFileError(str(error)) from None


@router.post(
    "/builds",
    url_name="api_worker_builds",
    response={200: BuildsAnswer, **_REFUSALS},
    summary="Request builds of candidates",
    openapi_extra=_SESSION,
)
def builds(request: HttpRequest, given: Asking) -> dict[str, Any]:
    """Request builds during a search, and return the finished ones. The request is idempotent."""
    return _json(build_requests.request_builds(_worker(request), given.lease, given.kernels))


@router.post(
    "/progress",
    url_name="api_worker_progress",
    response={200: ReplyAnswer, **_REFUSALS},
    summary="Upload results and renew the lease",
    openapi_extra=_SESSION,
)
def progress(request: HttpRequest, given: Progress) -> dict[str, Any]:
    """Store results, once for each kernel. The request is idempotent."""
    sent = [_valid(row.result, "results") for row in given.results]
    samples = (given.samples, given.samples_due)
    worker = _worker(request)
    return _json(results.progress(worker, given.lease, given.device, sent, given.spent_s, samples))


@router.post(
    "/finish",
    url_name="api_worker_finish",
    response={200: Fine, **_REFUSALS},
    summary="Finish a task",
    openapi_extra=_SESSION,
)
def finish(request: HttpRequest, given: Finish) -> dict[str, Any]:
    """Store the decision. The request is idempotent."""
    sent = [_valid(row.result, "results") for row in given.results]
    lines = [_valid(row.line, "lines") for row in given.lines]
    worker = _worker(request)
    if results.is_remeasurement(worker, given.lease):
        if lines:
            raise UserError("lines: a re-measurement takes results only")
        samples = (given.samples, given.samples_due)
        results.finish_remeasurement(worker, given.lease, given.device, sent, samples)
    else:
        if sent:
            raise UserError("results: a task takes lines only")
        results.finish(worker, given.lease, given.device, lines, given.rest, given.spent_s)
    return {"ok": True}


@router.post(
    "/give-up",
    url_name="api_worker_give_up",
    response={200: Fine, **_REFUSALS},
    summary="Return or reject a task",
    openapi_extra=_SESSION,
)
def give_up(request: HttpRequest, given: GivingUp) -> dict[str, Any]:
    """Return a task to the queue, or reject it with a reason. Ignored if the lease has ended."""
    worker = _worker(request)
    results.give_up(worker, given.lease, given.because(), given.reason, given.detail)
    return {"ok": True}


@router.post(
    "/leave",
    url_name="api_worker_leave",
    response={200: Fine, **_REFUSALS},
    summary="End the session",
    openapi_extra=_SESSION,
)
def leave(request: HttpRequest, given: Empty) -> dict[str, Any]:  # noqa: ARG001
    """End the session. Leased tasks return to the queue."""
    sessions.leave(_worker(request))
    return {"ok": True}


def _worker(request: HttpRequest) -> Worker:
    return sessions.worker_of(token_of(request), request.headers.get(SESSION_HEADER, "")[:100])


def _json(answer: object) -> dict[str, Any]:
    return dict(as_json(answer))


def _valid(convert: Callable[[], Converted], field: str) -> Converted:
    try:
        return convert()
    except ValueError as error:
        raise UserError(f"{field}: {error}") from None
