"""What a line of the log is about, besides its words: the request, who made it, the row of work.

Kept for each thread; a thread that is started for a row's sake takes it along with
``contextvars.copy_context``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from codegen_app.config.tracing import tracing

#: Where a request's own id is, among its environment.
REQUEST_ID = "kiln.request_id"
_ERROR_IDS = "_kiln_about"  # an exception's attribute: it is logged where the context is over

_request: ContextVar[Any] = ContextVar("request", default=None)
_row_ids: ContextVar[Mapping[str, Any]] = ContextVar("about", default={})  # noqa: B039 - not changed


@contextmanager
def request_context(request: Any) -> Iterator[None]:
    """What is logged inside is about that ``HttpRequest``."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@contextmanager
def row_context(**ids: Any) -> Iterator[None]:
    """What is logged inside is about these rows (``run_id=3``), and what is logged later of an
    exception that was raised inside."""
    token = _row_ids.set({**_row_ids.get(), **ids})
    try:
        yield
    except BaseException as error:
        if not hasattr(error, _ERROR_IDS):
            with suppress(AttributeError):  # one with slots
                setattr(error, _ERROR_IDS, _row_ids.get())
        raise
    finally:
        _row_ids.reset(token)


def record_context(record: logging.LogRecord) -> dict[str, Any]:
    """``request_id``, ``user_id``, the trace's and the rows' ids, as far as they are known of a
    record. Nothing is asked for: a log must not need the database."""
    request = getattr(record, "request", None) or _request.get()
    found: dict[str, Any] = {}
    environment = getattr(request, "META", {})
    if REQUEST_ID in environment:
        found["request_id"] = environment[REQUEST_ID]
    user = getattr(request, "_cached_user", None)  # Django's, once somebody asked for the user
    user_id = getattr(user, "pk", None)
    if user_id is not None:
        found["user_id"] = user_id
    error = record.exc_info[1] if record.exc_info else None
    return {**found, **tracing.ids(), **_row_ids.get(), **getattr(error, _ERROR_IDS, {})}
