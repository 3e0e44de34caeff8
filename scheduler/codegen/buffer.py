"""The output of a template, which replaces a node's operations."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.ir.operations import Buffer


@dataclass(frozen=True)
class TemplateBuffer:
    """The names of the buffers that a template's kernel reads, and those that it writes."""

    template: str
    inputs: tuple[str, ...]
    outputs: tuple[Buffer, ...]
