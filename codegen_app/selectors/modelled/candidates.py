"""Modelled times of a node's candidates: of one board, at one binding of the sizes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from codegen_app.selectors.modelled.rows import ModelledRow, rows_of_builds


@dataclass(frozen=True)
class ModelledAt:
    """Of which board and sizes modelled times are: those of two are never set beside each other."""

    target: str
    board: str
    sizes: Mapping[str, int]

    @property
    def where(self) -> str:
        """As titles say it."""
        sizes = " ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.board} at {sizes}" if sizes else self.board


@dataclass(frozen=True)
class ModelledTime:
    """Microseconds at the low ends of the model's constants, their middle, and their high ends."""

    low_us: float
    time_us: float
    high_us: float
    sentence: str
    unknown: Mapping[str, int]
    url: str


def modelled_times(
    builds: Mapping[int, Collection[int]],
    target: str = "",
    device: str = "",
    sizes: Mapping[str, int] | None = None,
) -> tuple[ModelledAt | None, dict[int, ModelledTime]]:
    """Of kernels by key, with their builds (1 query): where the times are of, and the times.

    Of the boards and sizes at which there are any, it is that of the ``target`` and ``device`` at
    these sizes (where measured times are of), else where most of the kernels were modelled.
    """
    kernel_of = {build: kernel for kernel, of in builds.items() for build in of}
    groups: dict[tuple[str, str, str], list[ModelledRow]] = defaultdict(list)
    for row in rows_of_builds(kernel_of):
        groups[row.target, row.board, json.dumps(row.sizes, sort_keys=True)].append(row)
    if not groups:
        return None, {}

    def nearness(key: tuple[str, str, str]) -> tuple[bool, bool, bool, int]:
        of_target, board, at = key
        known = json.loads(at)
        same = sizes is not None and all(sizes.get(name) == known[name] for name in known)
        kernels = {kernel_of[row.build] for row in groups[key]}
        return of_target == target, board in device, same, len(kernels)

    best = max(sorted(groups), key=nearness)
    found = ModelledAt(best[0], best[1], json.loads(best[2]))
    return found, _times(groups[best], kernel_of)


def _times(rows: Iterable[ModelledRow], kernel_of: Mapping[int, int]) -> dict[int, ModelledTime]:
    """The newest of each kernel."""
    found: dict[int, ModelledTime] = {}
    for row in rows:
        if row.low_us is None or row.time_us is None or row.high_us is None:
            continue
        time = ModelledTime(
            row.low_us, row.time_us, row.high_us, row.sentence, row.unknown, row.url
        )
        found.setdefault(kernel_of[row.build], time)
    return found
