"""The common part of CuteDSL templates: names, the parts of the source, candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from jinja2 import Template

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.caller import CuteDSLTemplateCaller
from scheduler.codegen.cutedsl.jinja_templates import device_functions
from scheduler.codegen.cutedsl.partial_render import PartialRender
from scheduler.codegen.cutedsl.source import ALTERNATIVE, SOURCE_FILE
from scheduler.codegen.names import code_digest, fused_name
from scheduler.codegen.printing.lines import Lines, PythonLines
from scheduler.codegen.template import KernelTemplate

CONSTANTS = "<CONSTANTS>"
DEVICE_FUNCTIONS = "<DEVICE_FUNCTIONS>"
_IMPORTS = """\
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
"""


class CuteDSLTemplate(KernelTemplate):
    """A template whose source is Python with NVIDIA's CuteDSL: one source for each NVIDIA GPU."""

    prefix: ClassVar[str] = "cutedsl"
    source_file: ClassVar[str] = SOURCE_FILE
    comment_mark: ClassVar[str] = "#"
    lines_type: ClassVar[type[Lines]] = PythonLines
    caller_type: ClassVar[type[TemplateCaller]] = CuteDSLTemplateCaller
    alternative: ClassVar[str] = ALTERNATIVE

    @property
    def is_preferred(self) -> bool:
        """Whether its default is assumed to be faster than HIP C++'s, by measurements of both on a
        Hopper GPU (docs/gpu/benchmarks.md): wgmma multiplies twice as fast as mma.sync."""
        return False

    def kernel_name(self, source: str) -> str:
        """Return ``cutedsl_<fused>_<8 hex>``; without the middle part if no op has a name."""
        fused = fused_name(self.lowered.graph.nodes_named(self.node.nodes))
        parts = (self.prefix, *(() if fused == "fused" else (fused,)), code_digest(source))
        return "_".join(parts)

    def partial(
        self,
        template: Template,
        constants: Callable[[], str],
        hooks: Mapping[str, Callable[[str], str]] | None = None,
        **context: object,
    ) -> PartialRender:
        """Return the template's text with placeholders: those of ``hooks`` (filled from the text at
        that time), then the constants, which ``constants`` gives once all arguments are known, and
        last the device functions that the whole text calls."""
        code = template.render(
            imports=_IMPORTS, constants=CONSTANTS, device_functions=DEVICE_FUNCTIONS, **context
        )
        filled = {**(hooks or {}), CONSTANTS: lambda _: constants().rstrip("\n")}
        return PartialRender(code, {**filled, DEVICE_FUNCTIONS: device_functions})
