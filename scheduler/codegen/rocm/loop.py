"""The loop templates of HIP C++."""

from __future__ import annotations

from scheduler.codegen.loops import template
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.launch import LaunchTemplate


class LoopTemplate(template.LoopTemplate[ROCmTemplateKernel], LaunchTemplate):
    """A template over a loop nest; subclasses say how the nest is spread over threads."""
