"""The IR node that a template leaves behind: what it writes and the workspace it needs."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.ir.graph import Expr
from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class ROCmTemplateBuffer:
    """Output of a template kernel. ``workspace_bytes`` is scratch memory for one call."""

    template: str
    inputs: tuple[str, ...]
    outputs: tuple[Buffer, ...]
    workspace_bytes: Expr
