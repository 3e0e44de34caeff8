"""The output of a CuteDSL template."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.buffer import TemplateBuffer


@dataclass(frozen=True)
class CuteDSLTemplateBuffer(TemplateBuffer):
    """The results of a CuteDSL kernel."""
