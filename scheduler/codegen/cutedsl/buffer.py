"""What a template of CuteDSL leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.buffer import TemplateBuffer


@dataclass(frozen=True)
class CuteDSLTemplateBuffer(TemplateBuffer):
    """The results of a CuteDSL kernel."""
