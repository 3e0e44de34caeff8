from __future__ import annotations

from scheduler.codegen.caller import TemplateBuffer


class ROCmTemplateBuffer(TemplateBuffer):
    """The results of a HIP C++ kernel."""
