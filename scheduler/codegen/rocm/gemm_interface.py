"""A contraction group in the kernel's terms: its arguments, and the text of every access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.rocm.contraction import IndexGroup, Parametrizer
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.operand import Operand, analyse
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Axis, Buffer, Contraction
from scheduler.ir.values import Load, Value, loads

_INDENT = 2


@dataclass(frozen=True)
class Member:
    """One contraction of the group: its columns, its second operand, its stores."""

    contraction: Contraction
    n: IndexGroup
    b: Operand
    columns: str  # the argument that holds their number
    parametrizer: Parametrizer


class GemmInterface:
    """Arguments of the kernel for contractions that share batch, m, k and the operand ``a``."""

    def __init__(
        self,
        members: tuple[Contraction, ...],
        buffers: Mapping[str, Buffer],
        symbols: Mapping[str, SymbolInfo],
        marks: Marks,
        input_reorder: tuple[int, ...] | None = None,
    ) -> None:
        first = members[0]
        self._marks = marks
        self._sizes = Ranges.of_symbols(symbols)
        self.buffers = buffers
        self.kernel = ROCmTemplateKernel()
        self.sizes: dict[str, list[str]] = {}  # how the text names the axes' sizes, by group
        self.batch = IndexGroup("batch", first.batch)
        self.m = IndexGroup("m", first.m)
        self.k = IndexGroup("k", first.k)
        self.element = max(
            (first.a.dtype, *(member.b.dtype for member in members)), key=lambda d: d.itemsize
        )
        self._register_buffers(members, input_reorder)
        self._register_sizes(members)
        shared = (self.batch, self.m, self.k)
        self.a = analyse("A", first.a, self.element, shared, buffers)
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
        others = [load.buffer for member in members for load in _reads(member)]
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
        kernel.named_scalar("M", self.m.extent)
        self._columns = []
        for position, member in enumerate(members):
            name = f"N{position}" if len(members) > 1 else "N"
            self._columns.append(kernel.named_scalar(name, IndexGroup("n", member.n).extent))
        kernel.named_scalar("K", self.k.extent)
        kernel.named_scalar("batches", self.batch.extent)
        for group in (self.batch, self.m, self.k):
            self._register_axes(group.name, group.axes)
        for position, member in enumerate(members):
            self._register_axes(f"n{position}" if len(members) > 1 else "n", member.n)

    def _register_axes(self, name: str, axes: tuple[Axis, ...]) -> None:
        """Sizes by which a flat index is divided. Those of k are divided by at every step: where
        they are fixed (a window's) the text holds them, which saves the division."""
        sizes = self.sizes.setdefault(name, [""])
        for position, axis in enumerate(axes[1:], start=1):
            if name == "k" and axis.size.is_Integer:
                sizes.append(str(axis.size))
            else:
                argument = self.kernel.named_scalar(f"{name}_size{position}", axis.size)
                sizes.append(f"p.{argument}")

    def _parametrizer(self, groups: tuple[IndexGroup, ...], counts: dict[str, int]) -> Parametrizer:
        return Parametrizer(self.kernel, groups, self.buffers, counts, wide=self._wide())

    def _wide(self) -> bool:
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
        b = analyse(f"B{position}", member.b, self.element, (batch, n, k), self.buffers)
        parametrizer = self._parametrizer((batch, m, n, k), counts)
        return Member(member, n, b, self._columns[position], parametrizer)

    def _parametrize(self) -> None:
        """Every access once, so that all arguments are known before anything is printed."""
        self._a_value = self._a_parametrizer.value(self.a.value)
        self._b_values = [member.parametrizer.value(member.b.value) for member in self.members]
        self._stores = [
            [member.parametrizer.store(store) for store in member.contraction.stores]
            for member in self.members
        ]
        self._names = {arg.name: f"p.{arg.name}" for arg in self.kernel.args}
        for group in (self.batch, self.m, self.k, *(member.n for member in self.members)):
            self._names.update(group.texts)
        self._memory = {
            name: Memory(f"p.{self.kernel.arg_name(name)}", buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    # ---- texts

    def read_a(self) -> str:
        """The body of A's ``read``."""
        return self._read(self.a, self._a_value, self._a_parametrizer)

    def read_b(self, position: int) -> str:
        """The body of a member's second operand's ``read``."""
        member = self.members[position]
        return self._read(member.b, self._b_values[position], member.parametrizer)

    def _read(self, operand: Operand, value: Value, parametrizer: Parametrizer) -> str:
        lines = Lines(self._marks, _INDENT)
        printer = self._printer(lines, {})
        if operand.load is None:
            text = printer.element(value, operand.element)
            lines.add("Vec<T, kV> element;")
            lines.add(f"element[0] = {text};")
            lines.add("return element;")
            return str(lines)
        if operand.condition is not None:
            condition = printer.value(parametrizer.value(operand.condition))
            lines.add(f"if (!({condition})) return 0;")
        pointer = self._memory[operand.load.buffer].pointer
        offset = self._index_text(parametrizer.offset(operand.load))
        lines.add(f"return kiln::mma::read<kV>({pointer} + ({offset}));")
        return str(lines)

    def store(self, position: int) -> str:
        """The body of a member's ``store``."""
        lines = Lines(self._marks, _INDENT)
        printer = self._printer(lines, {"acc": "acc"})
        nodes = self.members[position].contraction.nodes
        for store in self._stores[position]:
            with printer.computing(store.nodes or nodes):
                printer.store(store)
        return str(lines)

    def _printer(self, lines: Lines, accumulators: dict[str, str]) -> ValuePrinter:
        return ValuePrinter(
            lines,
            self._memory,
            accumulators,
            index=IndexPrinter(names=self._names),
            address=lambda _, index: index[0],
        )

    def _index_text(self, expr: sympy.Expr) -> str:
        return IndexPrinter(names=self._names)(expr)

    def checks(self) -> list[str]:
        """Host statements that return an error for null and misaligned pointers.

        An operand may be null where k is 0; what is read behind a mask or an index that comes
        from memory may be empty, and then null as well.
        """
        kernel = self.kernel
        operands = [self.a, *(member.b for member in self.members)]
        sure = {operand.load.buffer: "K" for operand in operands if operand.load}
        for member in self.members:
            for store in member.contraction.stores:
                sure[store.buffer] = "points"
        checks = [kernel.check_not_null(buffer, numel) for buffer, numel in sure.items()]
        for position, operand in enumerate(operands):
            if operand.load is not None:
                name = kernel.arg_name(operand.load.buffer)
                width = "VECTOR_A" if position == 0 else "VECTOR_B"
                checks.append(
                    f"if (reinterpret_cast<uintptr_t>({name}) % ({width} * sizeof(T)) != 0)"
                    " return hipErrorInvalidValue;"
                )
        return list(dict.fromkeys(checks))


def _reads(member: Contraction) -> list[Load]:
    return [load for tree in member.trees for load in loads(tree)]


def argument(name: str) -> sympy.Symbol:
    """A scalar argument, for the expressions of launches."""
    return symbol(name)
