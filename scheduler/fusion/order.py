"""Topological order of kernels."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

Name = TypeVar("Name", bound=Hashable)


def topological_order(
    depends: Mapping[Name, Collection[Name]], priority: Callable[[Name], Any]
) -> list[Name]:
    """Return the names in dependency order. Among ready names the one with the lowest ``priority``
    comes first, so that the order is deterministic."""
    sorter = TopologicalSorter(depends)
    try:
        sorter.prepare()
    except CycleError as error:
        raise AssertionError(f"fusion created a cycle of kernels: {error.args[1]}") from None
    ready: list[tuple[Any, Name]] = []
    ordered: list[Name] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (priority(name), name))
        _, name = heapq.heappop(ready)
        ordered.append(name)
        sorter.done(name)
    return ordered
