"""Why a node has no kernel."""

from __future__ import annotations

from scheduler.ir.graph import Node


class Unsupported(Exception):  # noqa: N818 - an expected answer, not an error
    """Raised by an op's rule for arguments that it does not cover; the node becomes an extern."""


def where(node: Node) -> str:
    """A node and its origin, for messages: ``add_1 (aten.add.Tensor, model.h.0, f.py:3)``."""
    parts = [node.target]
    if node.origin.module_path:
        parts.append(node.origin.module_path)
    if node.origin.frames:
        frame = node.origin.frames[-1]
        parts.append(f"{frame.file}:{frame.line}")
    return f"{node.name} ({', '.join(parts)})"
