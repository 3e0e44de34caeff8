"""The output of a HIP C++ template."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.buffer import TemplateBuffer


@dataclass(frozen=True)
class ROCmTemplateBuffer(TemplateBuffer):
    """The results of a HIP C++ kernel."""
