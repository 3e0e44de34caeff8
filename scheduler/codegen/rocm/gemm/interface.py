"""A contraction group in HIP terms: the source of every access."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.codegen.contraction.addressing import Bound
from scheduler.codegen.contraction.interface import ContractionInterface
from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.printing.precision import store_root
from scheduler.codegen.rocm.gemm.operands import OperandText, kernel_addressing
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.vectorized_stores import VectorStorePrinter
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.ranges import Ranges
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
        *,
        converts: bool = False,
    ) -> None:
        kernel = ROCmTemplateKernel()
        super().__init__(members, buffers, symbols, kernel, input_reorder, converts=converts)
        self._marks = marks
        ranges = Ranges.from_symbols(symbols)
        self._parts = [kernel_addressing(read, ranges, self.kernel) for read in self.reads]
        self._names = {arg.name: f"p.{arg.name}" for arg in self.kernel.args}
        for group in self.groups:
            self._names.update(group.texts)
        self._memory = {
            name: Memory(f"p.{self.kernel.arg_name(name)}", buffer)
            for name, buffer in self.kernel.buffers.items()
        }
        self._texts = OperandText(
            self._names,
            {name: memory.pointer for name, memory in self._memory.items()},
            lambda: Lines(marks, _INDENT),
            lambda lines: self._printer(lines, {}),
        )

    # ---- source

    def operand(self, position: int, *, asynchronous: bool) -> dict[str, str]:
        """Return the source parts of A's struct (0), or of a member's second operand's (1 …)."""
        return self._texts.context(
            self.reads[position], self._parts[position], asynchronous=asynchronous
        )

    def bounds(self, position: int) -> tuple[Bound, ...]:
        """The bounds of an operand's mask (A's for 0), in the kernel's terms."""
        parts = self._parts[position]
        return () if parts is None else parts.bounds

    def direct_obstacle(self, position: int) -> str:
        """Return why an operand (A for 0) cannot be loaded into LDS without registers, or ""."""
        operand, parts = self.reads[position].operand, self._parts[position]
        if parts is None or parts.bounds or not parts.steps.is_32_bit or not parts.steps.flat:
            return f"{operand.name} is computed, masked, or spans more than 2 GiB"
        if operand.is_converted:
            return f"{operand.name} is converted while it is loaded"
        if not operand.along_k:
            return f"{operand.name} is transposed while it is loaded"
        return ""

    def index_text(self, expr: Expr) -> str:
        """Return an index over the kernel's arguments and indices."""
        return IndexPrinter(names=self._names)(expr)

    def results(self, position: int) -> tuple[str, list[dict[str, str]]]:
        """Return statements that compute a member's results as ``to.out0``, ``to.out1`` …, and for
        each result its element type, its pointer and its offset."""
        lines = Lines(self._marks, 1)
        printer = self._printer(lines, {"acc": "acc"})
        nodes = self.members[position].contraction.nodes
        made = self.stores[position]
        printer.allow_fast(store_root(s.value, printer.dtype(s.buffer)) for s in made)
        stores = []
        for number, store in enumerate(made):
            dtype = self.buffers[store.buffer].dtype
            with printer.mark_nodes(store.nodes or nodes):
                lines.add(f"to.out{number} = {printer.element(store.value, dtype)};")
            pointer = self._memory[store.buffer].pointer
            offset = self.index_text(store.index[0])
            stores.append({"element": dtype.cpp, "pointer": pointer, "offset": offset})
        return str(lines), stores

    def store(self, position: int) -> str:
        """Return the body of a member's ``store``."""
        lines = Lines(self._marks, _INDENT)
        printer = self._printer(lines, {"acc": "acc"})
        nodes = self.members[position].contraction.nodes
        stores = self.stores[position]
        printer.allow_fast(store_root(s.value, printer.dtype(s.buffer)) for s in stores)
        for store in stores:
            with printer.mark_nodes(store.nodes or nodes):
                printer.store(store)
        return str(lines)

    def vectorized_stores(self, position: int) -> VectorStorePrinter:
        """Return the printer of a member's stores for neighbouring columns at once."""
        n = self.members[position].n
        return VectorStorePrinter(
            *(self.stores[position], self._memory, self._names, n.flat), whole=not n.components
        )

    def _printer(self, lines: Lines, accumulators: dict[str, str]) -> ValuePrinter:
        return ValuePrinter(
            lines,
            self._memory,
            accumulators,
            index=IndexPrinter(names=self._names),
            address=lambda _, index: index[0],
        )

    def checks(self) -> list[str]:
        """Return host statements that return an error for null and misaligned pointers.

        An operand may be null if k is 0; a buffer read behind a mask or through an index from
        memory may be empty, and then null as well.
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
                size = (
                    f"sizeof({operand.memory_dtype.cpp})" if operand.is_converted else "sizeof(T)"
                )
                checks.append(
                    f"if (reinterpret_cast<uintptr_t>({name}) % ({width} * {size}) != 0)"
                    " return hipErrorInvalidValue;"
                )
        return list(dict.fromkeys(checks))
