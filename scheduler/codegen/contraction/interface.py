"""A contraction group in a kernel's terms, in any language: its arguments, and every access over
the kernel's indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import sympy

from scheduler.codegen.contraction.indices import IndexGroup, Parametrizer
from scheduler.codegen.contraction.operand import Operand, analyse_operand
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Buffer, Contraction, numel
from scheduler.ir.values import Value, loads

Kernel = TypeVar("Kernel", bound=KernelInterface)


@dataclass(frozen=True)
class Member:
    """One contraction of the group: its columns, its second operand, its stores."""

    contraction: Contraction
    n: IndexGroup
    b: Operand
    columns: str  # the argument that holds their number
    parametrizer: Parametrizer


@dataclass(frozen=True)
class OperandRead:
    """An operand in the kernel's terms: its value, and where its load and its condition are."""

    operand: Operand
    value: Value
    parametrizer: Parametrizer


class ContractionInterface(Generic[Kernel]):
    """Arguments of the kernel for contractions that share batch, m, k and the operand ``a``.

    ``sizes`` are the axis sizes by which each group's flat index is divided (none for the outermost
    axis): an argument's name or a number. ``is_grouped``: there are several members.
    ``converts``: the kernel converts operands that are read in 8-bit types.
    """

    def __init__(
        self,
        members: tuple[Contraction, ...],
        buffers: Mapping[str, Buffer],
        symbols: Mapping[str, SymbolInfo],
        kernel: Kernel,
        *,
        converts: bool = False,
    ) -> None:
        first, self.is_grouped = members[0], len(members) > 1
        self.buffers = buffers
        self.kernel = kernel
        self.sizes: dict[str, list[str]] = {}
        self.batch = IndexGroup("batch", first.batch)
        self.m = IndexGroup("m", first.m)
        self.k = IndexGroup("k", first.k)
        self.element = max(
            (first.a.dtype, *(member.b.dtype for member in members)), key=lambda d: d.itemsize
        )
        self._register_buffers(members)
        column_args = self._register_sizes(members)
        # An index inside a division may need 64 bits, at some size within its range.
        sizes = Ranges.from_symbols(symbols)
        numels = (sympy.Mul(*buffer.size) for buffer in kernel.buffers.values())
        wide = any(bounds(count, sizes)[1] > INT32_MAX for count in numels)
        name_counts: dict[str, int] = {}

        def analyse(
            name: str, value: Value, groups: tuple[IndexGroup, ...]
        ) -> tuple[Operand, Parametrizer]:
            batch, *between, k = groups
            operand = analyse_operand(
                name, value, self.element, (batch, between[-1], k), buffers, converts=converts
            )
            return operand, Parametrizer(kernel, groups, buffers, name_counts, sizes, wide=wide)

        self.a, parametrizer_a = analyse("A", first.a, (self.batch, self.m, self.k))
        self.members: tuple[Member, ...] = ()
        for position, (member, column_arg) in enumerate(zip(members, column_args, strict=True)):
            batch, m, n, k = (
                IndexGroup(name, getattr(member, name)) for name in ("batch", "m", "n", "k")
            )
            b, parametrizer_b = analyse(f"B{position}", member.b, (batch, m, n, k))
            self.members += (Member(member, n, b, column_arg, parametrizer_b),)
        # Every access is converted once, so that all arguments are known before anything is
        # printed.
        self.reads = tuple(
            OperandRead(operand, parametrizer.value(operand.value), parametrizer)
            for operand, parametrizer in (
                (self.a, parametrizer_a),
                *((member.b, member.parametrizer) for member in self.members),
            )
        )
        self.stores = tuple(
            tuple(member.parametrizer.store(store) for store in member.contraction.stores)
            for member in self.members
        )

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Return the shared operand, then each member's second one."""
        return self.a, *(member.b for member in self.members)

    # ---- arguments

    def _register_buffers(self, members: tuple[Contraction, ...]) -> None:
        input_names: dict[str, str] = {}
        for position, member in enumerate(members):
            weight_name = f"W{position}" if self.is_grouped else "W"
            for name, operand in (("X", member.a), (weight_name, member.b)):
                first_load = next(loads(operand), None)
                if first_load is not None:
                    input_names.setdefault(first_load.buffer, name)
        values = (value for member in members for value in member.trees)
        read_buffers = dict.fromkeys(load.buffer for value in values for load in loads(value))
        other_inputs = [buffer for buffer in read_buffers if buffer not in input_names]
        input_names.update({buffer: f"in{i}" for i, buffer in enumerate(other_inputs)})
        stores = (store for member in members for store in member.stores)
        written = dict.fromkeys(store.buffer for store in stores)
        outputs = ["Y"] if len(written) == 1 else [f"Y{i}" for i in range(len(written))]
        self.kernel.def_kernel(
            [self.buffers[buffer] for buffer in input_names],
            [self.buffers[buffer] for buffer in written],
            [*input_names.values(), *outputs],
        )

    def _register_sizes(self, members: tuple[Contraction, ...]) -> list[str]:
        """Register the extents, and the sizes by which flat indices are divided. Returns the
        arguments that hold the members' numbers of columns."""
        kernel = self.kernel
        kernel.add_scalar("M", self.m.extent)
        suffixes = [str(i) if self.is_grouped else "" for i in range(len(members))]
        column_args = [
            kernel.add_scalar(f"N{suffix}", numel(member.n))
            for suffix, member in zip(suffixes, members, strict=True)
        ]
        kernel.add_scalar("K", self.k.extent)
        kernel.add_scalar("batches", self.batch.extent)
        groups = [(group.name, group.axes) for group in (self.batch, self.m, self.k)]
        groups += [
            (f"n{suffix}", member.n) for suffix, member in zip(suffixes, members, strict=True)
        ]
        for name, axes in groups:
            sizes = self.sizes.setdefault(name, [""])
            for position, axis in enumerate(axes[1:], start=1):
                # k is divided at every step: a window's fixed sizes are literals in the source.
                if name == "k" and axis.size.is_Integer:
                    sizes.append(str(axis.size))
                else:
                    sizes.append(kernel.add_scalar(f"{name}_size{position}", axis.size))
        return column_args

    def extents(self, bindings: Mapping[str, int]) -> tuple[int, int, int, int]:
        """Return batch, m, n of all members together, and k, at values of the symbols."""
        columns = sum(evaluate(member.n.extent, bindings) for member in self.members)
        batch, m, k = (evaluate(group.extent, bindings) for group in (self.batch, self.m, self.k))
        return batch, m, columns, k

    def read_of(self, operand: Operand) -> OperandRead:
        """Return the operand in the kernel's terms."""
        return next(read for read in self.reads if read.operand is operand)

    def axis_sizes(self, group: str, position: int) -> Sequence[str]:
        """Return the sizes of a group's axes after the first, which is never a divisor; for n,
        those of the member at ``position``."""
        is_numbered = self.is_grouped and group == "n"
        return self.sizes[f"{group}{position}" if is_numbered else group][1:]

    @property
    def groups(self) -> tuple[IndexGroup, ...]:
        return self.batch, self.m, self.k, *(member.n for member in self.members)

    @property
    def points(self) -> Expr:
        """Return the number of results of all members, over the kernel's arguments."""
        columns = sympy.Add(*(symbol(member.columns) for member in self.members))
        return symbol("batches") * symbol("M") * columns
