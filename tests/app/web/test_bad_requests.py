"""A part of what ``tests/benchmarks/bad_requests.py`` sends, at each run of the tests."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.benchmarks import bad_requests

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.full
@pytest.mark.parametrize(
    "send",
    [
        bad_requests.test_bad_requests_give_no_failure,
        bad_requests.test_requests_of_the_api_s_own_description_give_no_failure,
    ],
)
def test_some_hundred_bad_requests_give_no_failure(
    send: Any, settings: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_requests, "REQUESTS", 300)
    send(settings, client)
