"""The context of a log line: the request, its user, the row of work.

It is kept per thread; a thread that is started for a row takes it along with
``contextvars.copy_context``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from codegen_app.platform.config.tracing import tracing

#: The key of a request's id in its environment.
REQUEST_ID = "kiln.request_id"
_ERROR_IDS = "_kiln_about"  # an exception's attribute: it is logged after the context

_request: ContextVar[Any] = ContextVar("request", default=None)
_row_ids: ContextVar[Mapping[str, Any]] = ContextVar("about", default={})  # noqa: B039 - not changed


@contextmanager
def request_context(request: Any) -> Iterator[None]:
    """Lines that are logged inside belong to that ``HttpRequest``."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@contextmanager
def row_context(**ids: Any) -> Iterator[None]:
    """Lines that are logged inside belong to these rows (``run_id=3``), and so do later lines about
    an exception that was raised inside."""
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
    """Return ``request_id``, ``user_id``, and the trace's and the rows' ids, as far as a record has
    them. Nothing is queried: a log must not need the database."""
    request = getattr(record, "request", None) or _request.get()
    ids: dict[str, Any] = {}
    environment = getattr(request, "META", {})
    if REQUEST_ID in environment:
        ids["request_id"] = environment[REQUEST_ID]
    user = getattr(request, "_cached_user", None)  # Django's, once the user was loaded
    user_id = getattr(user, "pk", None)
    if user_id is not None:
        ids["user_id"] = user_id
    error = record.exc_info[1] if record.exc_info else None
    return {**ids, **tracing.ids(), **_row_ids.get(), **getattr(error, _ERROR_IDS, {})}
