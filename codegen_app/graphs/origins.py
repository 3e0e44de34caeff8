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


def common_module(members: Iterable[tuple[str, bool]]) -> str:
    """Return the module that a kernel belongs to, from its nodes: the path of each one's module,
    and whether other kernels compute the node too.

    It is the common prefix of the paths. Shared nodes, such as a mask that each attention computes
    for itself, count only if there are no others.
    """
    nodes = list(members)
    paths = [path for path, is_shared in nodes if not is_shared] or [path for path, _ in nodes]
    common: list[str] = []
    for parts in zip(*(path.split(".") for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


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
