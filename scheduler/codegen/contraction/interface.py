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
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Axis, Buffer, Contraction
from scheduler.ir.values import Load, Value, loads

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
    axis): an argument's name or a number. ``converts``: the kernel converts operands that are read
    in 8-bit types.
    """

    def __init__(
        self,
        members: tuple[Contraction, ...],
        buffers: Mapping[str, Buffer],
        symbols: Mapping[str, SymbolInfo],
        kernel: Kernel,
        input_reorder: tuple[int, ...] | None = None,
        *,
        converts: bool = False,
    ) -> None:
        first = members[0]
        self._converts = converts
        self._sizes = Ranges.from_symbols(symbols)
        self.buffers = buffers
        self.kernel = kernel
        self.sizes: dict[str, list[str]] = {}
        self.batch = IndexGroup("batch", first.batch)
        self.m = IndexGroup("m", first.m)
        self.k = IndexGroup("k", first.k)
        self.element = max(
            (first.a.dtype, *(member.b.dtype for member in members)), key=lambda d: d.itemsize
        )
        self._register_buffers(members, input_reorder)
        self._register_sizes(members)
        shared = (self.batch, self.m, self.k)
        self.a = self._operand("A", first.a, shared)
        counts: dict[str, int] = {}
        self._a_parametrizer = self._parametrizer(shared, counts)
        self.members = tuple(
            self._member(position, member, counts) for position, member in enumerate(members)
        )
        self._parametrize()

    # ---- arguments

    def _register_buffers(
        self, members: tuple[Contraction, ...], input_reorder: tuple[int, ...] | None
    ) -> None:
        several = len(members) > 1
        names: dict[str, str] = {}
        for position, member in enumerate(members):
            suffix = str(position) if several else ""
            for name, value in (("X", member.a), (f"W{suffix}", member.b)):
                first = next(loads(value), None)
                if first is not None:
                    names.setdefault(first.buffer, name)
        others = [load.buffer for member in members for load in _member_loads(member)]
        extra = [buffer for buffer in dict.fromkeys(others) if buffer not in names]
        names.update({buffer: f"in{i}" for i, buffer in enumerate(extra)})
        stores = [store for member in members for store in member.stores]
        outputs = [self.buffers[buffer] for buffer in dict.fromkeys(s.buffer for s in stores)]
        single = len(outputs) == 1
        self.kernel.def_kernel(
            [self.buffers[buffer] for buffer in names],
            outputs,
            [*names.values(), *(f"Y{'' if single else i}" for i in range(len(outputs)))],
            input_reorder,
        )

    def _register_sizes(self, members: tuple[Contraction, ...]) -> None:
        kernel = self.kernel
        kernel.add_scalar("M", self.m.extent)
        self._columns = []
        for position, member in enumerate(members):
            name = f"N{position}" if len(members) > 1 else "N"
            self._columns.append(kernel.add_scalar(name, IndexGroup("n", member.n).extent))
        kernel.add_scalar("K", self.k.extent)
        kernel.add_scalar("batches", self.batch.extent)
        for group in (self.batch, self.m, self.k):
            self._register_axes(group.name, group.axes)
        for position, member in enumerate(members):
            self._register_axes(f"n{position}" if len(members) > 1 else "n", member.n)

    def extents(self, bindings: Mapping[str, int]) -> tuple[int, int, int, int]:
        """Return batch, m, n of all members together, and k, at values of the symbols."""
        columns = sum(evaluate(member.n.extent, bindings) for member in self.members)
        batch, m, k = (evaluate(group.extent, bindings) for group in (self.batch, self.m, self.k))
        return batch, m, columns, k

    def _register_axes(self, name: str, axes: tuple[Axis, ...]) -> None:
        """Register the sizes by which a flat index is divided. Those of k are divided by at every
        step: if they are fixed (a window's), they are literals in the source, which saves the
        division."""
        sizes = self.sizes.setdefault(name, [""])
        for position, axis in enumerate(axes[1:], start=1):
            if name == "k" and axis.size.is_Integer:
                sizes.append(str(axis.size))
            else:
                sizes.append(self.kernel.add_scalar(f"{name}_size{position}", axis.size))

    def _parametrizer(self, groups: tuple[IndexGroup, ...], counts: dict[str, int]) -> Parametrizer:
        return Parametrizer(
            self.kernel, groups, self.buffers, counts, self._sizes, wide=self._needs_64_bits()
        )

    def _needs_64_bits(self) -> bool:
        """Whether an index inside a division may need 64 bits, at some size within its range."""
        numels = (sympy.Mul(*buffer.size) for buffer in self.kernel.buffers.values())
        return any(bounds(numel, self._sizes)[1] > INT32_MAX for numel in numels)

    def _member(self, position: int, member: Contraction, counts: dict[str, int]) -> Member:
        batch, m, k = (
            IndexGroup("batch", member.batch),
            IndexGroup("m", member.m),
            IndexGroup("k", member.k),
        )
        n = IndexGroup("n", member.n)
        b = self._operand(f"B{position}", member.b, (batch, n, k))
        parametrizer = self._parametrizer((batch, m, n, k), counts)
        return Member(member, n, b, self._columns[position], parametrizer)

    def _operand(
        self, name: str, value: Value, groups: tuple[IndexGroup, IndexGroup, IndexGroup]
    ) -> Operand:
        return analyse_operand(
            name, value, self.element, groups, self.buffers, converts=self._converts
        )

    def _parametrize(self) -> None:
        """Convert every access once, so that all arguments are known before anything is printed."""
        self.reads = (self._read(self.a, self._a_parametrizer), *map(self._read_b, self.members))
        self.stores = tuple(
            tuple(member.parametrizer.store(store) for store in member.contraction.stores)
            for member in self.members
        )

    def _read_b(self, member: Member) -> OperandRead:
        return self._read(member.b, member.parametrizer)

    def _read(self, operand: Operand, parametrizer: Parametrizer) -> OperandRead:
        return OperandRead(operand, parametrizer.value(operand.value), parametrizer)

    def read_of(self, operand: Operand) -> OperandRead:
        """Return the operand in the kernel's terms."""
        return next(read for read in self.reads if read.operand is operand)

    def axis_sizes(self, group: str, position: int) -> Sequence[str]:
        """Return the sizes of a group's axes after the first, which is never a divisor; for n,
        those of the member at ``position``."""
        several = len(self.members) > 1 and group == "n"
        return self.sizes[f"{group}{position}" if several else group][1:]

    @property
    def groups(self) -> tuple[IndexGroup, ...]:
        return self.batch, self.m, self.k, *(member.n for member in self.members)


def _member_loads(member: Contraction) -> list[Load]:
    return [load for tree in member.trees for load in loads(tree)]


def argument(name: str) -> sympy.Symbol:
    """Return a scalar argument, for the expressions of launches."""
    return symbol(name)
