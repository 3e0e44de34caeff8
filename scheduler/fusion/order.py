"""Execution order of groups."""

from __future__ import annotations

import heapq

from scheduler.fusion.group import Group


def topological(groups: list[Group]) -> list[Group]:
    """Groups after those they depend on; otherwise by where they began in the graph."""
    waiting = {g.number: len(g.depends) for g in groups}
    by_number = {g.number: g for g in groups}
    followers: dict[int, list[int]] = {}
    for group in groups:
        for number in group.depends:
            followers.setdefault(number, []).append(group.number)
    ready = [(max(g.indices), g.number) for g in groups if not g.depends]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(by_number[number])
        for follower in followers.get(number, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, (max(by_number[follower].indices), follower))
    if len(ordered) != len(groups):
        raise AssertionError("fusion made a cycle of kernels")
    return ordered
