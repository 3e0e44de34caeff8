"""Requests made from the API's own OpenAPI description, valid and not, by schemathesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import requests
from django.test import Client
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as limits
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, openapi

from codegen_app.site.api.urls import openapi as description

_BASE = "http://testserver"
_NOT_SENT = ("user-agent", "content-length", "authorization", "accept-encoding")


def answers(client: Client, token: str, count: int) -> Counter[int]:
    """Send about that many, of every operation as many valid and spoiled ones; the statuses of the
    answers. Raises ``AssertionError`` with the request at the first of 500 or more."""
    seen: Counter[int] = Counter()
    found = list(_strategies())
    for strategy in found:
        _try_out(strategy, client, token, max(1, count // len(found)), seen)
    return seen


def _strategies() -> Iterator[Any]:
    for operation in openapi.from_dict(description()).get_all_operations():
        for mode in (GenerationMode.NEGATIVE, GenerationMode.POSITIVE):
            yield operation.ok().as_strategy(generation_mode=mode)


def _try_out(strategy: Any, client: Client, token: str, count: int, seen: Counter[int]) -> None:
    @seed(7)
    @limits(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def check(case: Any) -> None:
        status, content, what = _sent(case, client, token)
        assert status < 500, (what, content)
        seen[status] += 1

    try:
        check()
    except Unsatisfiable:  # an operation that takes nothing cannot be asked wrongly
        return


def _sent(case: Any, client: Client, token: str) -> tuple[int, bytes, str]:
    """Status, beginning of the content, and what was asked."""
    try:
        kwargs = case.as_transport_kwargs(base_url=_BASE)
        kwargs.pop("cookies", None)
        made = requests.Request(**kwargs).prepare()
    except (ValueError, requests.RequestException):  # what no client could send
        return 0, b"", ""
    headers = {k: v for k, v in made.headers.items() if k.lower() not in _NOT_SENT}
    headers = {str(k): v if isinstance(v, str) else v.decode("latin-1") for k, v in headers.items()}
    kind = headers.pop("Content-Type", "application/json")
    body = made.body if isinstance(made.body, bytes) else (made.body or "").encode()
    address = str(made.url).removeprefix(_BASE)
    answer = client.generic(
        str(made.method),
        address,
        body,
        content_type=kind,
        headers={**headers, "Authorization": f"Bearer {token}"},
    )
    return answer.status_code, answer.content[:300], f"{made.method} {address} {body[:300]!r}"
