"""What the loop and attention templates share: arguments, the exported function, one launch.

Static sizes are literals in these kernels; symbolic ones are arguments named as the symbols.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import sympy

from scheduler.codegen.cpp.index import IndexPrinter
from scheduler.codegen.kernel import ArgType, Launch
from scheduler.codegen.names import size_names
from scheduler.codegen.printing.values import Memory
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.template import ROCmTemplate
from scheduler.codegen.rocm.text import kernel_text
from scheduler.codegen.template import RenderedTemplate
from scheduler.ir.bindings import hints
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, as_expr, evaluate, symbol
from scheduler.ir.index.ranges import Ranges

KERNEL = "KERNEL_NAME_kernel"


@dataclass(frozen=True)
class Host:
    """The parts of the exported function, as text."""

    signature: str
    points: str
    checks: tuple[str, ...]
    grid: str
    arguments: str


@dataclass(frozen=True)
class Interface:
    """What a kernel reads and writes (buffers' names in order), the symbolic sizes it must know,
    and how many points it computes: with none there is nothing to launch."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: tuple[str, ...]
    points: Expr
    wide: bool


class LaunchTemplate(ROCmTemplate):
    """A template whose exported function is one launch."""

    @cached_property
    def ranges(self) -> Ranges:
        """What values the symbolic sizes may have."""
        return Ranges.of_symbols(self.lowered.graph.symbols)

    @property
    @abstractmethod
    def interface(self) -> Interface:
        """What the kernel takes."""

    def header(self) -> str:
        return super().header() + "#include <kiln/vector.h>\n"

    def hint(self, expr: Expr) -> int:
        """The value of a size in the example that the model was exported with."""
        return evaluate(expr, hints(self.lowered.graph.symbols))

    @cached_property
    def renamed(self) -> dict[str, str]:
        """The symbols whose own names could meet a word of C++ or a name in the kernel."""
        names = size_names(self.interface.symbols)
        return {symbol: name for symbol, name in names.items() if symbol != name}

    @property
    def index_type(self) -> str:
        """The C++ type of offsets and loop variables."""
        return "int64_t" if self.interface.wide else "int32_t"

    # -- arguments -------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> ROCmTemplateKernel:
        """The C interface: inputs, outputs, then the symbolic sizes."""
        kernel = ROCmTemplateKernel()
        buffers, interface = self.lowered.buffers, self.interface
        inputs = [buffers[name] for name in interface.inputs]
        outputs = [buffers[name] for name in interface.outputs]
        names = [f"in_ptr{i}" for i in range(len(inputs))]
        names += [f"out_ptr{i}" for i in range(len(outputs))]
        kernel.def_kernel(inputs, outputs, names)
        size_type: ArgType = "i64" if interface.wide else "i32"
        for name in interface.symbols:
            kernel.named_scalar(self.renamed.get(name, name), symbol(name), size_type)
        return kernel

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """The buffers by name, with their pointers."""
        return {
            name: Memory(self.kernel.arg_name(name), buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    @cached_property
    def parameters(self) -> str:
        pointers = [
            f"{'' if name in self.interface.outputs else 'const '}"
            f"{memory.buffer.dtype.cpp}* __restrict__ {memory.pointer}"
            for name, memory in self.memory.items()
        ]
        sizes = [
            f"{self.index_type} {self.renamed.get(name, name)}" for name in self.interface.symbols
        ]
        return ",\n    ".join([*pointers, *sizes])

    # -- the exported function -------------------------------------------------------------------

    @cached_property
    def _host_printer(self) -> IndexPrinter:
        return IndexPrinter(wide=True, ranges=self.ranges, names=self.renamed)

    @cached_property
    def _checks(self) -> tuple[str, ...]:
        return tuple(
            self.kernel.check_not_null(name, self._host_printer(sympy.Mul(*buffer.size)))
            for name, buffer in self.kernel.buffers.items()
        )

    def host(self, blocks: Expr) -> Host:
        """The exported function's parts for a launch of ``blocks`` blocks."""
        names = [arg.name for arg in self.kernel.args]
        return Host(
            signature=self.kernel.signature("KERNEL_NAME"),
            points=self._host_printer(self.interface.points),
            checks=self._checks,
            grid=self._host_printer(blocks),
            arguments="".join(f", {name}" for name in names),
        )

    def finished(
        self, blocks: Expr, threads: int, lds_bytes: int, **context: object
    ) -> RenderedTemplate:
        """Text and interface of a kernel that is one launch of ``blocks`` blocks. The text is
        that of the template's name; ``context`` is what it asks for besides."""
        text = kernel_text(self.name).render(
            header=self.header(),
            index_type=self.index_type,
            threads=threads,
            parameters=self.parameters,
            host=self.host(blocks),
            **context,
        )
        source, origins = self.marks.finish(text)
        one = as_expr(1)
        over_arguments = blocks.xreplace({symbol(a): symbol(b) for a, b in self.renamed.items()})
        launch = Launch(
            KERNEL,
            (over_arguments, one, one),
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
