"""Queries are as many for many rows as for few, and not too many: what tests hold of their number.

Not the number itself: one more or fewer for a good reason is no fault of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import connection
from django.test.utils import CaptureQueriesContext


def statements_of(read: Callable[..., object], *arguments: object) -> list[str]:
    """What a call asks the database."""
    with CaptureQueriesContext(connection) as made:
        read(*arguments)
    return [one["sql"] for one in made.captured_queries]


def queries_of(read: Callable[..., object], *arguments: object) -> int:
    """How many statements a call makes."""
    return len(statements_of(read, *arguments))


def most(usual: int) -> int:
    """What is still few, where ``usual`` were made when the test was written: half as many more."""
    return usual + (usual + 1) // 2


def assert_steady(few: Sequence[int], many: Sequence[int], usual: Sequence[int]) -> None:
    """The numbers of some calls with few rows and with many: the same, and few."""
    assert list(few) == list(many), f"queries grow with the rows: {few}, then {many}"
    limits = [most(one) for one in usual]
    assert all(a <= b for a, b in zip(few, limits, strict=True)), f"{few}, at most {limits}"
