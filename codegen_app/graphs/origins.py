"""Find the model's own line among a node's frames, and the lines of a kernel that compute it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias


def own_frame(frames: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the innermost frame outside torch's own files, else the innermost; None without
    frames.

    A frame in torch (``torch/nn/modules/linear.py``) does not identify the calling model.
    """
    outside_torch = [frame for frame in frames if "/torch/" not in f"/{frame['file']}"]
    return next(iter([*outside_torch[-1:], *frames[-1:]]), None)


Lines: TypeAlias = tuple[tuple[int, int], ...]


def lines_by_node(origins: Iterable[Mapping[str, Any]]) -> dict[str, Lines]:
    """Return for each graph node the lines of a kernel's source that compute it, (first, last)
    each, from ``KernelUse.line_origins``; consecutive lines form one range."""
    by_node: dict[str, list[tuple[int, int]]] = {}
    for origin in sorted(origins, key=lambda origin: (origin["first"], origin["last"])):
        for name in origin["nodes"]:
            ranges = by_node.setdefault(name, [])
            first, last = origin["first"], origin["last"]
            if ranges and first <= ranges[-1][1] + 1:
                before = ranges.pop()
                first, last = before[0], max(last, before[1])
            ranges.append((first, last))
    return {name: tuple(ranges) for name, ranges in by_node.items()}
