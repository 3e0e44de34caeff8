from __future__ import annotations

from scheduler.codegen.caller import TemplateBuffer


class CuteDSLTemplateBuffer(TemplateBuffer):
    """The results of a CuteDSL kernel."""
