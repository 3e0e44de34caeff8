"""Names of kernels: stable by content, so that the same input gives the same bundle."""

from __future__ import annotations

import hashlib

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Graph

PLACEHOLDER = "KERNEL_NAME"
_LONGEST_FUSED = 60


def fused_name(node: SchedulerNode, graph: Graph) -> str:
    """The ops of the node in order, each once: ``addmm_gelu`` (at most 60 characters)."""
    targets = {item.name: item.target for item in graph.nodes}
    ops = dict.fromkeys(
        targets[name].split(".")[1].strip("_") for name in node.nodes if name in targets
    )
    return "_".join(ops)[:_LONGEST_FUSED].rstrip("_") or "kernel"


def kernel_name(node: SchedulerNode, graph: Graph, source: str) -> str:
    """``rocm_<fused>_<8 hex>`` from a source that has ``KERNEL_NAME`` where its name belongs."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return f"rocm_{fused_name(node, graph)}_{digest}"
