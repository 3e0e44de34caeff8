"""scheduler/cpu_count.py: what a container or a pinned job may use, not what the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.cpu_count import usable_cpus


@pytest.fixture(autouse=True)
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


def usable(folder: Path, group: str, **limits: str) -> int:
    """With these limits of groups, whose names have ``__`` for ``/``."""
    for name, text in limits.items():
        place = folder / "groups" / name.replace("__", "/").removeprefix("root")
        place.mkdir(parents=True, exist_ok=True)
        (place / "cpu.max").write_text(text)
    (folder / "own").write_text(f"5:cpu,cpuacct:/elsewhere\n0::{group}\n")
    return usable_cpus(folder / "own", folder / "groups")


def test_without_groups_those_that_it_may_run_on(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path / "none", tmp_path) == 16
    assert usable(tmp_path, "/") == 16


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000\n", 16),
        ("200000 100000\n", 2),
        ("250000 100000\n", 3),
        ("1000 100000\n", 1),
        ("6400000 100000\n", 16),
        ("", 16),
        ("200000", 16),
        ("many 100000", 16),
    ],
)
def test_a_container_s_limit(text: str, expected: int, tmp_path: Path) -> None:
    assert usable(tmp_path, "/", root=text) == expected


def test_the_least_of_its_group_and_those_around(tmp_path: Path) -> None:
    limits = {"a": "400000 100000", "a__b": "max 100000", "a__c": "100000 100000"}
    assert usable(tmp_path, "/a/b/d", **limits) == 4
