"""Builds that are asked for while a search goes on: each once, whatever the server does."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.agent.build_requests import RequestedBuilds
from scheduler.agent.client import LeaseOverError, StoppedError
from scheduler.agent.protocol import BuildResult, BuildResults, Library
from scheduler.errors import Rejected, Stage

LIBRARY: Any = SimpleNamespace(kernel="b")


def caller(name: str) -> Any:
    return SimpleNamespace(name=name)


def fetched(one: Library) -> Any:
    return f"built {one.kernel}"


def test_what_is_over_comes_and_what_is_not_is_asked_for_again() -> None:
    asked: list[list[str]] = []
    rest = threading.Event()

    def ask(names: list[str]) -> BuildResults:
        asked.append(names)
        if names == ["c"]:
            rest.set()
        if len(asked) == 1:
            raise StoppedError("the server is away")
        there = {
            "a": BuildResult("a", loss=Rejected(Stage.COMPILE, "no")),
            "b": BuildResult("b", LIBRARY),
        }
        return BuildResults(0.1, tuple(there[name] for name in names if name in there))

    pool = RequestedBuilds(ask, fetched, lambda error: pytest.fail(str(error)))
    futures = [pool.submit(caller(name)) for name in ("a", "b", "b", "c")]
    assert futures[0].result(60) == Rejected(Stage.COMPILE, "no")
    assert [one.result(60) for one in futures[1:3]] == ["built b"] * 2
    assert rest.wait(60), "the one that is left"
    pool.close()
    pool.close()
    assert futures[3].cancelled()


def test_a_library_that_is_cut_off_is_fetched_again() -> None:
    tries: list[str] = []

    def fetch(one: Library) -> Any:
        tries.append(one.kernel)
        if len(tries) == 1:
            raise StoppedError("8 of 9 bytes came")
        return fetched(one)

    pool = RequestedBuilds(
        lambda _: BuildResults(0.1, (BuildResult("b", LIBRARY),)),
        fetch,
        lambda error: pytest.fail(str(error)),
    )
    assert pool.submit(caller("b")).result(60) == "built b"
    pool.close()
    assert tries == ["b", "b"]


def test_a_lease_that_is_over_ends_the_asking() -> None:
    failures: list[Exception] = []
    failed = threading.Event()

    def ask(_: list[str]) -> BuildResults:
        raise LeaseOverError("the run was cancelled")

    def fail(error: Exception) -> None:
        failures.append(error)
        failed.set()

    pool = RequestedBuilds(ask, fetched, fail)
    future = pool.submit(caller("a"))
    assert failed.wait(60)
    pool.close()
    assert future.cancelled()
    assert [type(one) for one in failures] == [LeaseOverError]
