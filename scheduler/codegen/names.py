"""Names of kernels, stable by content: ``<backend>_<fused>_<8 hex>``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Graph, Node
from scheduler.text import to_identifier

#: Placeholder for a kernel's name until its source is complete.
PLACEHOLDER = "KERNEL_NAME"

_MAX_FUSED_LENGTH = 80
_MAX_SIZE_LENGTH = 100
_TORCH_SYMBOL = re.compile(r"[su][0-9]{1,18}")


def op_packet(target: str) -> str:
    """Return an op's name without its overload: ``aten.addmm`` for ``aten.addmm.default``."""
    components = target.split(".")
    return ".".join(components[:2]) if len(components) > 2 else target


def fused_name(nodes: tuple[Node, ...]) -> str:
    """Return ``fused_add_mul``: the distinct ops of a kernel, sorted, as Inductor's
    get_fused_kernel_name does.

    A name of more than 80 characters is cut after a whole op and ends with the number of omitted
    ops.
    """
    # The names come from the model's file.
    op_names = {op_packet(node.target).rpartition(".")[2] for node in nodes}
    ops = sorted({to_identifier(name).strip("_") or "op" for name in op_names})
    name_parts = ["fused"]
    for position, op in enumerate(ops):
        if len("_".join([*name_parts, op])) > _MAX_FUSED_LENGTH:
            name_parts.append(f"and_{len(ops) - position}_more")
            break
        name_parts.append(op)
    return "_".join(name_parts)


def size_names(symbols: Iterable[str]) -> dict[str, str]:
    """Return the names of symbolic sizes in sources: torch's own names (``s27``, ``u0``) unchanged.

    Other names come from the file's author and may be words or macros of the language, or names
    that the source itself uses: they become distinct names ``n_<name>``.
    """
    names: dict[str, str] = {}
    for symbol in sorted(symbols):
        name = (
            symbol
            if _TORCH_SYMBOL.fullmatch(symbol)
            else f"n_{to_identifier(symbol)[:_MAX_SIZE_LENGTH]}"
        )
        if PLACEHOLDER in name:
            name = name.lower()
        while name in names.values():
            name += "_"
        names[symbol] = name
    return names


def kernel_name(prefix: str, node: SchedulerNode, graph: Graph, source: str) -> str:
    """Return the name of the kernel with this source, in which ``KERNEL_NAME`` stands for the name.

    Only the ops' names and the source decide it, so a kernel has the same name in every run.
    """
    return f"{prefix}_{fused_name(graph.nodes_named(node.nodes))}_{code_digest(source)}"


def backend_of_kernel(name: str) -> str:
    """Return the backend that made the kernel of that name: ``rocm``, ``cutedsl``."""
    return name.partition("_")[0]


def is_named_by_code(name: str, source: str, comment_mark: str) -> bool:
    """Whether a kernel's name matches its source, regardless of the comment above it."""
    lines = source.splitlines(keepends=True)
    first_code_line = next(
        (n for n, line in enumerate(lines) if not line.startswith(comment_mark)), 0
    )
    code = "".join(lines[first_code_line:]).replace(name, PLACEHOLDER)
    return name.endswith(f"_{code_digest(code)}")


def code_digest(source: str) -> str:
    """Return the digest of the source that a kernel's name contains."""
    return hashlib.sha256(source.encode()).hexdigest()[:8]
