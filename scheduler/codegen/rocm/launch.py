"""The HIP source that loop and attention templates share: parameters, the exported function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import sympy

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.kernel import ArgType, Launch
from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.template import ROCmTemplate
from scheduler.codegen.single_launch import SingleLaunchTemplate
from scheduler.codegen.template import RenderedTemplate
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr

KERNEL_FUNCTION = "KERNEL_NAME_kernel"


@dataclass(frozen=True)
class HostFunction:
    """The parts of the exported function, as text."""

    signature: str
    points: str
    checks: tuple[str, ...]
    grid: str
    arguments: str


_CPP_TYPES: Mapping[ArgType, str] = {"i32": "int32_t", "i64": "int64_t"}


class LaunchTemplate(SingleLaunchTemplate[ROCmTemplateKernel], ROCmTemplate):
    """A template whose exported function launches its device functions, usually one."""

    def new_kernel(self) -> ROCmTemplateKernel:
        return ROCmTemplateKernel()

    def header(self) -> str:
        return super().header() + "#include <kiln/vector.h>\n"

    def nest_printer(
        self, nest: LoopNest, pack: Pack | None = None, indent: int = 1
    ) -> NestPrinter:
        """Return a printer of a nest into empty lines."""
        lines = self.lines(indent)
        return NestPrinter(nest, lines, self.memory, pack, self.symbol_renames)

    @property
    def index_type(self) -> str:
        """Return the C++ type of offsets and loop variables."""
        return "int64_t" if self.interface.wide else "int32_t"

    @cached_property
    def parameters(self) -> str:
        """Return the parameters of a launched device function."""
        return self.typed_parameters("")

    def typed_parameters(self, index_type: str) -> str:
        """Return the parameters of a device function whose sizes have that type, or their own types
        if none is given."""
        pointers = [
            f"{'' if name in self.interface.outputs else 'const '}"
            f"{memory.buffer.dtype.cpp}* __restrict__ {memory.pointer}"
            for name, memory in self.memory.items()
        ]
        renames = self.symbol_renames
        sizes = [
            f"{index_type or _CPP_TYPES[self.size_type(name)]} {renames.get(name, name)}"
            for name in self.interface.symbols
        ]
        numbers = [f"int64_t {name}" for name, _ in self.interface.derived_scalars]
        return ",\n    ".join([*pointers, *sizes, *numbers])

    # -- the exported function -------------------------------------------------------------------

    @cached_property
    def _host_printer(self) -> IndexPrinter:
        return IndexPrinter(wide=True, ranges=self.ranges, names=self.symbol_renames)

    @cached_property
    def _checks(self) -> tuple[str, ...]:
        return tuple(
            self.kernel.check_not_null(name, self._host_printer(sympy.Mul(*buffer.size)))
            for name, buffer in self.kernel.buffers.items()
        )

    def host(self, blocks: Expr) -> HostFunction:
        """Return the exported function's parts for a launch of ``blocks`` blocks."""
        names = [arg.name for arg in self.kernel.args]
        return HostFunction(
            signature=self.kernel.signature("KERNEL_NAME"),
            points=self._host_printer(self.interface.points),
            checks=self._checks,
            grid=self._host_printer(blocks),
            arguments="".join(f", {name}" for name in names),
        )

    def make_launch(
        self,
        function: str,
        blocks: Expr,
        threads: int,
        lds_bytes: int = 0,
        parts: int = 1,
        *,
        workspace: bool = False,
    ) -> Launch:
        """Return a launch of a function that takes all arguments of the kernel, and the
        ``workspace`` if it uses one; ``parts`` blocks share the work of one block."""
        names = tuple(arg.name for arg in self.kernel.args)
        if workspace:
            names = (*names, "workspace")
        grid = (self.rename_symbols(blocks), as_expr(parts), as_expr(1))
        return Launch(function, grid, (threads, 1, 1), lds_bytes, names)

    def render_kernel(
        self,
        blocks: Expr,
        threads: int,
        lds_bytes: int,
        workspace_bytes: Expr | None = None,
        **context: object,
    ) -> RenderedTemplate:
        """Return source and interface of a kernel with one launch of ``blocks`` blocks, and with
        ``workspace_bytes`` of memory of its own if given. The source is that of the template's
        name; ``context`` holds its other variables."""
        text = kernel_template(self.name).render(
            header=self.header(),
            index_type=self.index_type,
            threads=threads,
            parameters=self.parameters,
            host=self.host(blocks),
            **context,
        )
        workspace = workspace_bytes is not None
        launch = self.make_launch(KERNEL_FUNCTION, blocks, threads, lds_bytes, workspace=workspace)
        return self.finish_render(text, (launch,), workspace_bytes)

    def finish_render(
        self, text: str, launches: Iterable[Launch], workspace_bytes: Expr | None = None
    ) -> RenderedTemplate:
        """Return a kernel's source, with marks, and these launches."""
        source, origins = self.marks.finish(text)
        values = self.kernel.call_kernel("KERNEL_NAME", self.node.nodes).args
        workspace = self.rename_symbols(workspace_bytes or as_expr(0))
        args = self.kernel.args
        return RenderedTemplate(source, args, values, tuple(launches), workspace, origins)
