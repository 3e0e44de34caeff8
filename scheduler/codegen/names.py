"""Names of kernels, stable by content: ``<backend>_<fused>_<8 hex>``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Graph, Node
from scheduler.text import to_identifier

#: Stands where a kernel's name belongs until its text is complete.
PLACEHOLDER = "KERNEL_NAME"

_FUSED_LIMIT = 80
_SIZE_LIMIT = 100
_TORCH_SYMBOL = re.compile(r"[su][0-9]{1,18}")


def op_packet(target: str) -> str:
    """An op's name without its overload: ``aten.addmm`` for ``aten.addmm.default``."""
    parts = target.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else target


def fused_name(nodes: tuple[Node, ...]) -> str:
    """``fused_add_mul``: the distinct ops of a kernel, sorted, as Inductor's get_fused_kernel_name.

    A name of more than 80 characters is cut after a whole op and says how many follow.
    """
    ops = sorted({_op_identifier(op_packet(node.target).rpartition(".")[2]) for node in nodes})
    parts = ["fused"]
    for position, op in enumerate(ops):
        if len("_".join([*parts, op])) > _FUSED_LIMIT:
            parts.append(f"and_{len(ops) - position}_more")
            break
        parts.append(op)
    return "_".join(parts)


def _op_identifier(op: str) -> str:
    """What a C identifier can hold of an op's name, which comes from the model's file."""
    return to_identifier(op).strip("_") or "op"


def size_names(symbols: Iterable[str]) -> dict[str, str]:
    """What symbolic sizes are called in sources: torch's own names (``s27``, ``u0``) as they are.

    Others come from whoever made the file and may be words or macros of the language, or names
    that the source has itself: they become ``n_<name>``, each another.
    """
    names: dict[str, str] = {}
    for symbol in sorted(symbols):
        name = (
            symbol
            if _TORCH_SYMBOL.fullmatch(symbol)
            else f"n_{to_identifier(symbol)[:_SIZE_LIMIT]}"
        )
        if PLACEHOLDER in name:
            name = name.lower()
        while name in names.values():
            name += "_"
        names[symbol] = name
    return names


def kernel_name(prefix: str, node: SchedulerNode, graph: Graph, source: str) -> str:
    """The name of the kernel with this text, in which ``KERNEL_NAME`` stands for the name.

    Only the ops' names and the text decide it, so the same kernel has the same name in any run.
    """
    return f"{prefix}_{fused_name(graph.nodes_named(node.nodes))}_{code_digest(source)}"


def backend_of_kernel(name: str) -> str:
    """Which backend made the kernel of that name: ``rocm``, ``cutedsl``."""
    return name.partition("_")[0]


def is_named_by_code(name: str, source: str, comment_mark: str) -> bool:
    """Whether a kernel's name is that of its text, whatever the comment above it says."""
    lines = source.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if not line.startswith(comment_mark)), 0)
    code = "".join(lines[first:]).replace(name, PLACEHOLDER)
    return name.endswith(f"_{code_digest(code)}")


def code_digest(source: str) -> str:
    """What a kernel's name says of its text."""
    return hashlib.sha256(source.encode()).hexdigest()[:8]
