"""The common part of single-launch templates in any language: arguments, sizes and their names.

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
    """The buffers that a kernel reads and writes (names in order), the symbolic sizes that it
    needs, and the number of points that it computes: with none there is nothing to launch.
    ``derived_scalars`` are computed from sizes for it, 64 bits each."""

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
        """Return the ranges of the symbolic sizes."""
        return Ranges.from_symbols(self.lowered.graph.symbols)

    @property
    @abstractmethod
    def interface(self) -> InterfaceSpec:
        """Return the kernel's interface."""

    @abstractmethod
    def new_kernel(self) -> Kernel:
        """Return an interface without arguments, for the language."""

    def hint(self, expr: Expr) -> int:
        """Return a size's value in the example that the model was exported with."""
        return evaluate(expr, hint_bindings(self.lowered.graph.symbols))

    @cached_property
    def symbol_renames(self) -> dict[str, str]:
        """Return the symbols whose own names could collide with the language's or the kernel's
        names."""
        names = size_names(self.interface.symbols)
        return {size: name for size, name in names.items() if size != name}

    @cached_property
    def kernel(self) -> Kernel:
        """Return the C interface: inputs, outputs, symbolic sizes, and numbers derived from
        them."""
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
        """Return a symbol's type in the kernel: a symbol that is not a tensor's size may exceed 32
        bits even if no index does."""
        large = bounds(symbol(name), self.ranges)[1] > INT32_MAX
        return "i64" if self.interface.wide or large else "i32"

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """Return the buffers by name, with their pointers."""
        return {
            name: Memory(self.kernel.arg_name(name), buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    def rename_symbols(self, expr: Expr) -> Expr:
        """Return an expression over symbols as one over the arguments that hold them."""
        return expr.xreplace({symbol(a): symbol(b) for a, b in self.symbol_renames.items()})


def ceil_div(a: Expr, b: int) -> Expr:
    """Return the number of blocks of ``b`` that cover ``a``."""
    if a.is_Integer:
        return as_expr(-(-int(a) // b))
    return FloorDiv(a + (b - 1), as_expr(b))
