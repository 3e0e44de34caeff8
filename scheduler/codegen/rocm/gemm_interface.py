"""A contraction group in a HIP kernel's terms: the text of every access."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.codegen.contraction.interface import ContractionInterface, Read
from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.operations import Buffer, Contraction

_INDENT = 2


class GemmInterface(ContractionInterface[ROCmTemplateKernel]):
    """The arguments of a HIP kernel are the members of its argument ``p``."""

    def __init__(
        self,
        members: tuple[Contraction, ...],
        buffers: Mapping[str, Buffer],
        symbols: Mapping[str, SymbolInfo],
        marks: Marks,
        input_reorder: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(members, buffers, symbols, ROCmTemplateKernel(), input_reorder)
        self._marks = marks
        self._names = {arg.name: f"p.{arg.name}" for arg in self.kernel.args}
        for group in self.groups:
            self._names.update(group.texts)
        self._memory = {
            name: Memory(f"p.{self.kernel.arg_name(name)}", buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    # ---- texts

    def read_a(self) -> str:
        """The body of A's ``read``."""
        return self._read_text(self.reads[0])

    def read_b(self, position: int) -> str:
        """The body of a member's second operand's ``read``."""
        return self._read_text(self.reads[1 + position])

    def address_a(self) -> str:
        """The body of A's ``at``, where it is copied as it lies."""
        return self._address_text(self.reads[0])

    def address_b(self, position: int) -> str:
        """The body of a member's second operand's ``at``."""
        return self._address_text(self.reads[1 + position])

    def _address_text(self, read: Read) -> str:
        operand, parametrizer = read.operand, read.parametrizer
        assert operand.load is not None, "computed operands have no address"
        lines = Lines(self._marks, _INDENT)
        if operand.condition is not None:
            condition = self._printer(lines, {}).value(parametrizer.value(operand.condition))
            lines.add(f"inside = inside && ({condition});")
        pointer = self._memory[operand.load.buffer].pointer
        offset = self._index_text(parametrizer.offset(operand.load))
        lines.add(f"return {pointer} + ({offset});")
        return str(lines)

    def _read_text(self, read: Read) -> str:
        operand, parametrizer = read.operand, read.parametrizer
        lines = Lines(self._marks, _INDENT)
        printer = self._printer(lines, {})
        if operand.load is None:
            text = printer.element(read.value, operand.element)
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
        for store in self.stores[position]:
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
