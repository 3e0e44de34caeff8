"""The common part of CuteDSL templates: names, the parts of the source, candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import ClassVar

from jinja2 import Template

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.caller import CuteDSLTemplateCaller
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.jinja_templates import device_functions, kernel_template
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.types import index_type_of, type_obstacle
from scheduler.codegen.cutedsl.values import obstacle
from scheduler.codegen.kernel import Launch
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.names import PLACEHOLDER, code_digest, fused_name
from scheduler.codegen.printing.lines import Lines, PythonLines
from scheduler.codegen.single_launch import SingleLaunchTemplate
from scheduler.codegen.template import KernelTemplate, RenderedTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Accumulator, Call, Cast, walk

ALTERNATIVE = "HIP C++"
"""What makes kernels for the same targets if CuteDSL's templates cannot."""

CONSTANTS = "<CONSTANTS>"
DEVICE_FUNCTIONS = "<DEVICE_FUNCTIONS>"
_IMPORTS = """\
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
"""


class PartialRender:
    """A template's text and the functions that fill its placeholders, in this order.

    A template's header names its arguments and its epilogue before they are all known: strides
    become arguments while bodies are printed, and the rest of a source determines which device
    functions it needs.
    """

    def __init__(self, code: str, hooks: dict[str, Callable[[str], str]]) -> None:
        self.code = code
        self._hooks = dict(hooks)

    def finalize(self, placeholder: str) -> None:
        """Fill one placeholder, from the text as it is now. Raises ``ValueError`` for a placeholder
        that the text does not contain exactly once, and ``KeyError`` if nothing is left to fill it
        with."""
        hook = self._hooks.pop(placeholder)
        if self.code.count(placeholder) != 1:
            raise ValueError(
                f"{placeholder} occurs {self.code.count(placeholder)} times in a template"
            )
        self.code = self.code.replace(placeholder, hook(self.code))

    def finalize_all(self) -> str:
        """Fill the remaining placeholders."""
        for placeholder in tuple(self._hooks):
            self.finalize(placeholder)
        return self.code


class CuteDSLTemplate(KernelTemplate):
    """A template whose source is Python with NVIDIA's CuteDSL: one source for each NVIDIA GPU."""

    prefix: ClassVar[str] = "cutedsl"
    source_file: ClassVar[str] = CUTEDSL_SOURCE
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
        name_parts = (self.prefix, *(() if fused == "fused" else (fused,)), code_digest(source))
        return "_".join(name_parts)

    def partial(
        self, template: Template, constants: Callable[[], str], **context: object
    ) -> PartialRender:
        """Return the template's text with placeholders: the constants, which ``constants`` gives
        once all arguments are known, and last the device functions that the whole text calls."""
        code = template.render(
            imports=_IMPORTS, constants=CONSTANTS, device_functions=DEVICE_FUNCTIONS, **context
        )
        fillers = {CONSTANTS: lambda _: constants().rstrip("\n")}
        return PartialRender(code, {**fillers, DEVICE_FUNCTIONS: device_functions})


class LaunchTemplate(SingleLaunchTemplate[CuteDSLTemplateKernel], CuteDSLTemplate):
    """A template over loop nests, whose exported function launches its kernels in order."""

    def new_kernel(self) -> CuteDSLTemplateKernel:
        return CuteDSLTemplateKernel()

    @cached_property
    def host(self) -> IndexPrinter:
        """Return the printer of expressions in the host function."""
        return IndexPrinter(wide=True, ranges=self.ranges, names=self.symbol_renames)

    @property
    def index_type(self) -> str:
        """Return the type of indices."""
        return index_type_of(wide=self.interface.wide)

    def nests_obstacle(self, nests: Iterable[LoopNest]) -> str:
        """Return why the values or the stored types of nests are not supported, or ""."""
        stored_dtypes = (self.lowered.buffers[name].dtype for name in self.node.writes)
        values = (statement.value for nest in nests for statement in nest.statements)
        return next(filter(None, (*map(type_obstacle, stored_dtypes), *map(obstacle, values))), "")

    def render_launches(
        self,
        launches: Iterable[tuple[str, Expr, int, int]],
        workspace_bytes: Expr,
        **context: object,
    ) -> RenderedTemplate:
        """Return source and interface of kernels, each with its name, number of blocks, threads of
        a block, and bytes of shared memory. The source is that of the template's name; ``context``
        holds its variables."""
        kernel, single_block = self.kernel, as_expr(1)

        def constants() -> str:
            return kernel.constants(self.interface.points, workspace_bytes, self.symbol_renames)

        name = self.name.removeprefix(f"{self.prefix}_")
        partial = self.partial(
            kernel_template(name),
            constants,
            parameters=kernel.parameters,
            arguments=kernel.names,
            **context,
        )
        source, origins = self.marks.finish(partial.finalize_all())
        # CuteDSL's device functions take arguments prepared by the host function; their names end
        # in the number of the launch.
        numbered_launches = tuple(
            Launch(
                f"{PLACEHOLDER}_{name}_{launch_number}",
                (self.rename_symbols(blocks), single_block, single_block),
                (threads, 1, 1),
                shared_bytes,
                (),
                dynamic_lds=shared_bytes > 0,
            )
            for launch_number, (name, blocks, threads, shared_bytes) in enumerate(launches)
        )
        values = kernel.call_kernel(PLACEHOLDER, self.node.nodes).args
        workspace = self.rename_symbols(workspace_bytes)
        return RenderedTemplate(source, kernel.args, values, numbered_launches, workspace, origins)


def has_epilogue(node: SchedulerNode) -> bool:
    """Whether more is stored than the template's result, converted to the buffer's type."""
    stores = [store for member in node.members for store in member.results]
    if len(stores) > len(node.members):
        return True
    for store in stores:
        value = store.value
        while isinstance(value, Cast):
            value = value.value
        if not isinstance(value, Accumulator):
            return True
    return False


def has_prologue(node: SchedulerNode) -> bool:
    """Whether an operand is computed rather than read."""
    operands = [value for member in node.members for value in member.matrix_operands]
    return any(isinstance(part, Call) for value in operands for part in walk(value))
