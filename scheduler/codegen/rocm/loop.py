"""What the loop templates (pointwise, reduction, scan) share: a nest, its arguments, its host part.

Static sizes are literals in a loop kernel; symbolic ones are arguments named as the symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.cpp.bounds import symbol_ranges
from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.cpp.lines import finish
from scheduler.codegen.cpp.values import Memory
from scheduler.codegen.kernel import ArgType, Launch
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.names import fused_name
from scheduler.codegen.rocm.environment import kernel_text
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.template import RenderedTemplate, ROCmTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.indexing import FloorDiv, as_expr, evaluate, symbol
from scheduler.ir.operations import Lowered, Pointwise, Reduction, Scan
from scheduler.outcome import Rejected, Stage
from scheduler.targets import Target


@dataclass(frozen=True)
class Host:
    """The parts of the exported function, as text."""

    signature: str
    sizes: tuple[str, ...]
    empty: str
    checks: tuple[str, ...]
    grid: str
    arguments: str


def refuse(reason: str, detail: str = "") -> Rejected:
    """A configuration that a rule turns down."""
    return Rejected(Stage.RULE, reason, detail)


class LoopTemplate(ROCmTemplate):
    """A template over a loop nest; subclasses say how the nest is spread over threads."""

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        members = [m for m in node.members if isinstance(m, Pointwise | Reduction | Scan)]
        if len(members) != len(node.members):
            raise ValueError(f"{node.name} has members that are no loops")
        self.ranges = symbol_ranges(lowered.graph.symbols)
        self.nest = LoopNest(members, lowered, self.ranges)
        self.hints = {name: info.hint for name, info in lowered.graph.symbols.items()}
        self.wide = self.nest.needs_64_bits()
        self.index_type = "int64_t" if self.wide else "int32_t"

    @property
    def problem(self) -> str:
        wanted = set(self.node.nodes)
        ops = fused_name(tuple(n for n in self.lowered.graph.nodes if n.name in wanted))
        outer, inner = self.nest.outer_numel, self.nest.inner_numel
        dtype = self.lowered.buffers[self.nest.outputs[0]].dtype.label
        sizes = f"{outer}x{inner}" if self.nest.inner else str(outer)
        return f"{ops.removeprefix('fused_')}({sizes}) {dtype}"

    def header(self) -> str:
        return (
            "#include <hip/hip_runtime.h>\n"
            "#include <kiln/index.h>\n"
            "#include <kiln/pointwise.h>\n"
            "#include <kiln/types.h>\n"
            "#include <kiln/vector.h>\n"
        )

    def hint(self, expr: Expr) -> int:
        """The value of a size in the example that the model was exported with."""
        return evaluate(expr, self.hints)

    # -- arguments -------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> ROCmTemplateKernel:
        """The C interface: inputs, outputs, then the symbolic sizes."""
        kernel = ROCmTemplateKernel()
        buffers = self.lowered.buffers
        inputs = [buffers[name] for name in self.nest.inputs]
        outputs = [buffers[name] for name in self.nest.outputs]
        names = [f"in_ptr{i}" for i in range(len(inputs))]
        names += [f"out_ptr{i}" for i in range(len(outputs))]
        kernel.def_kernel(inputs, outputs, names)
        for name in self.nest.symbols():
            kernel.named_scalar(name, symbol(name), self.size_type)
        return kernel

    @property
    def size_type(self) -> ArgType:
        """The type in which symbolic sizes are passed."""
        return "i64" if self.wide else "i32"

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """The buffers by name, with their pointers."""
        return {
            name: Memory(self.kernel.arg_name(name), buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    @cached_property
    def parameters(self) -> str:
        """The device function's parameters."""
        parts = [
            f"{'' if arg.is_output else 'const '}{self._element(arg.name)}* __restrict__ {arg.name}"
            if arg.type == "ptr"
            else f"{self.index_type} {arg.name}"
            for arg in self.kernel.args
        ]
        return ",\n    ".join(parts)

    def _element(self, argument: str) -> str:
        for memory in self.memory.values():
            if memory.pointer == argument:
                return memory.buffer.dtype.cpp
        raise KeyError(argument)

    # -- the exported function -------------------------------------------------------------------

    def host(self, blocks: Expr) -> Host:
        """The exported function's parts for a launch of ``blocks`` blocks."""
        printer = IndexPrinter(wide=True, ranges=self.nest.ranges)
        names = [arg.name for arg in self.kernel.args]
        numel = self.nest.outer_numel
        checks = [
            self.kernel.check_not_null(name, printer(sympy.Mul(*buffer.size)))
            for name, buffer in self.kernel.buffers.items()
        ]
        return Host(
            signature=self.kernel.signature("KERNEL_NAME"),
            sizes=(f"const int64_t numel = {printer(numel)};",),
            empty="numel == 0",
            checks=tuple(checks),
            grid=printer(blocks),
            arguments="".join(f", {name}" for name in names),
        )

    def finished(
        self, template: str, blocks: Expr, threads: int, lds_bytes: int, **context: object
    ) -> RenderedTemplate:
        """Text and interface of a kernel that is one launch of ``blocks`` blocks."""
        text = kernel_text(template).render(
            header=self.header(),
            index_type=self.index_type,
            threads=threads,
            parameters=self.parameters,
            host=self.host(blocks),
            **context,
        )
        source, origins = finish(text)
        one = as_expr(1)
        launch = Launch(
            "KERNEL_NAME_kernel",
            (blocks, one, one),
            (threads, 1, 1),
            lds_bytes,
            tuple(arg.name for arg in self.kernel.args),
        )
        values = self.kernel.call_kernel("KERNEL_NAME", self.node.nodes).args
        return RenderedTemplate(source, self.kernel.args, values, (launch,), as_expr(0), origins)


def ceil_div(a: Expr, b: int) -> Expr:
    """How many blocks of ``b`` cover ``a``."""
    if a.is_Integer:
        return as_expr(-(-int(a) // b))
    return FloorDiv(a + (b - 1), as_expr(b))


def static_sizes(sizes: Sequence[Expr]) -> bool:
    """Whether no size is symbolic."""
    return all(size.is_Integer for size in sizes)
