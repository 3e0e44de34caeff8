"""What templates of one launch share, whatever their language: arguments, sizes, their names.

Static sizes are literals in these kernels; symbolic ones are arguments named as the symbols.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from scheduler.codegen.kernel import ArgType
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.codegen.names import size_names
from scheduler.codegen.printing.values import Memory
from scheduler.codegen.template import KernelTemplate
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import FloorDiv, as_expr, evaluate, symbol
from scheduler.ir.index.ranges import Ranges

Kernel = TypeVar("Kernel", bound=KernelInterface)


@dataclass(frozen=True)
class InterfaceSpec:
    """What a kernel reads and writes (buffers' names in order), the symbolic sizes it must know,
    and how many points it computes: with none there is nothing to launch. ``numbers`` are computed
    from sizes for it, each of 64 bits."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: tuple[str, ...]
    points: Expr
    wide: bool
    derived_scalars: tuple[tuple[str, Expr], ...] = ()


class SingleLaunchTemplate(KernelTemplate, Generic[Kernel]):
    """A template whose exported function is one launch."""

    @cached_property
    def ranges(self) -> Ranges:
        """What values the symbolic sizes may have."""
        return Ranges.from_symbols(self.lowered.graph.symbols)

    @property
    @abstractmethod
    def interface(self) -> InterfaceSpec:
        """What the kernel takes."""

    @abstractmethod
    def new_kernel(self) -> Kernel:
        """An interface without arguments, of the language."""

    def hint(self, expr: Expr) -> int:
        """The value of a size in the example that the model was exported with."""
        return evaluate(expr, hint_bindings(self.lowered.graph.symbols))

    @cached_property
    def symbol_renames(self) -> dict[str, str]:
        """The symbols whose own names could meet a word of the language or a name in the kernel."""
        names = size_names(self.interface.symbols)
        return {symbol: name for symbol, name in names.items() if symbol != name}

    @cached_property
    def kernel(self) -> Kernel:
        """The C interface: inputs, outputs, the symbolic sizes, numbers that are made of them."""
        kernel = self.new_kernel()
        buffers, interface = self.lowered.buffers, self.interface
        inputs = [buffers[name] for name in interface.inputs]
        outputs = [buffers[name] for name in interface.outputs]
        names = [f"in_ptr{i}" for i in range(len(inputs))]
        names += [f"out_ptr{i}" for i in range(len(outputs))]
        kernel.def_kernel(inputs, outputs, names)
        for name in interface.symbols:
            kernel.add_scalar(
                self.symbol_renames.get(name, name), symbol(name), self.size_type(name)
            )
        for name, value in interface.derived_scalars:
            kernel.add_scalar(name, value, "i64")
        return kernel

    def size_type(self, name: str) -> ArgType:
        """A symbol's, as the kernel takes it: one that is no tensor's size may be beyond 32 bits
        where no index is."""
        large = bounds(symbol(name), self.ranges)[1] > INT32_MAX
        return "i64" if self.interface.wide or large else "i32"

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """The buffers by name, with their pointers."""
        return {
            name: Memory(self.kernel.arg_name(name), buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    def rename_symbols(self, expr: Expr) -> Expr:
        """An expression of symbols as one of the arguments that hold them."""
        return expr.xreplace({symbol(a): symbol(b) for a, b in self.symbol_renames.items()})


def ceil_div(a: Expr, b: int) -> Expr:
    """How many blocks of ``b`` cover ``a``."""
    if a.is_Integer:
        return as_expr(-(-int(a) // b))
    return FloorDiv(a + (b - 1), as_expr(b))
