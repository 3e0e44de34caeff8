"""A contraction group in HIP terms: the source of every access."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.addressing import Addressing, Bound, analyse_addressing
from scheduler.codegen.contraction.indices import IndexGroup, Strides
from scheduler.codegen.contraction.interface import ContractionInterface, OperandRead
from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.printing.precision import store_root
from scheduler.codegen.rocm.gemm.vectorized_stores import VectorStorePrinter
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Buffer, Contraction

_INDENT = 2


@dataclass(frozen=True)
class _KernelAddressing:
    """An operand's steps in the kernel's terms. ``back_row`` and ``back_step`` are how far before
    the first element rows and steps begin, as arguments or 0; ``lane_stride`` is the stride of the
    lane's k."""

    steps: Addressing
    strides: Strides
    bounds: tuple[Bound, ...]
    back_row: Expr
    back_step: Expr
    lane_stride: Expr


class GemmInterface(ContractionInterface[ROCmTemplateKernel]):
    """The arguments of a HIP kernel are the members of its argument ``p``."""

    def __init__(
        self,
        members: tuple[Contraction, ...],
        buffers: Mapping[str, Buffer],
        symbols: Mapping[str, SymbolInfo],
        marks: Marks,
        *,
        converts: bool = False,
    ) -> None:
        super().__init__(members, buffers, symbols, ROCmTemplateKernel(), converts=converts)
        self._marks = marks
        ranges = Ranges.from_symbols(symbols)
        self._addressing = [self._analyse(read, ranges) for read in self.reads]
        self._names = {arg.name: f"p.{arg.name}" for arg in self.kernel.args}
        for group in self.groups:
            self._names.update(group.texts)
        self._memory = {
            name: Memory(f"p.{self.kernel.arg_name(name)}", buffer)
            for name, buffer in self.kernel.buffers.items()
        }

    def _analyse(self, read: OperandRead, sizes: Ranges) -> _KernelAddressing | None:
        """Return an operand's addressing; None if it is computed element by element, or has another
        form of mask."""
        operand, parametrizer = read.operand, read.parametrizer
        steps = analyse_addressing(operand, sizes)
        if steps is None or operand.load is None:
            return None
        strides = parametrizer.strides(operand.load)
        if strides is None:
            return None

        def backward_offset(name: str, lowest_offset: Expr) -> Expr:
            if not steps.is_32_bit or lowest_offset == 0:
                return sympy.Integer(0)
            return symbol(self.kernel.add_scalar(f"{operand.name}_{name}", -lowest_offset, "i64"))

        along_k, innermost = strides.steps["k"], operand.k.innermost
        position = next((i for i, axis in enumerate(operand.k.axes) if axis is innermost), 0)
        return _KernelAddressing(
            steps,
            strides,
            tuple(
                Bound(
                    parametrizer.expression(bound.row),
                    parametrizer.expression(bound.step),
                    bound.nonnegative,
                    None if bound.limit is None else parametrizer.expression(bound.limit),
                )
                for bound in steps.bounds
            ),
            backward_offset("back_row", steps.low_row),
            backward_offset("back_step", steps.low_step),
            along_k[0] if len(along_k) == 1 else along_k[position],
        )

    def bounds(self, position: int) -> tuple[Bound, ...]:
        """The bounds of an operand's mask (A's for 0), in the kernel's terms."""
        addressing = self._addressing[position]
        return () if addressing is None else addressing.bounds

    def direct_obstacle(self, position: int) -> str:
        """Return why an operand (A for 0) cannot be loaded into LDS without registers, or ""."""
        operand, addressing = self.reads[position].operand, self._addressing[position]
        if (
            addressing is None
            or addressing.bounds
            or not addressing.steps.is_32_bit
            or not addressing.steps.flat
        ):
            return f"{operand.name} is computed, masked, or spans more than 2 GiB"
        if operand.is_converted:
            return f"{operand.name} is converted while it is loaded"
        if not operand.along_k:
            return f"{operand.name} is transposed while it is loaded"
        return ""

    def index_text(self, expr: Expr) -> str:
        """Return an index over the kernel's arguments and indices."""
        return IndexPrinter(names=self._names)(expr)

    # ---- operands

    def operand(self, position: int, *, asynchronous: bool) -> dict[str, str]:
        """Return the source parts of A's struct (0), or of a member's second operand's (1 …)."""
        read, addressing = self.reads[position], self._addressing[position]
        if addressing is None:
            return self._computed_operand(read, asynchronous=asynchronous)
        operand, steps, text = read.operand, addressing.steps, self.index_text
        offset = "uint32_t" if steps.is_32_bit else "int64_t"
        split_bounds = [b for b in addressing.bounds if b.step != 0 and b.row.free_symbols]
        row_bounds = [b for b in addressing.bounds if b.step == 0]
        step_bounds = [b for b in addressing.bounds if b.step != 0 and not b.row.free_symbols]

        def product(stride: Expr, index: str) -> str:
            factor = f"{offset}({text(stride)}) * " if stride != 1 else ""
            return f"{factor}{offset}({index})"

        def terms(group: IndexGroup, back: Expr) -> list[str]:
            pairs = _stride_index_pairs(addressing.strides, group)
            texts = [product(stride, text(index)) for stride, index in pairs if stride != 0]
            return [*texts, f"{offset}({text(back)})"] if back != 0 else texts

        def part_body(name: str, terms: list[str], sums: list[Expr], bounds: list[Bound]) -> str:
            """Return the function that computes a row or a step: its offset, its sums for
            ``split_bounds``, and whether it is inside ``bounds``."""
            lines = Lines(self._marks, _INDENT)
            offset_text = " + ".join(terms) or "0"
            if steps.is_32_bit:  # offsets of 32 bits are in bytes
                element = "Memory" if operand.is_converted else "T"
                offset_text = f"({offset_text}) * sizeof({element})"
            lines.add(f"{name.title()} {name};")
            lines.add(f"{name}.at = {offset_text};")
            for i, value in enumerate(sums):
                lines.add(f"{name}.t{i} = int32_t({text(value)});")
            if bounds:
                tests = [bound_test(bound, text(bound.row + bound.step), text) for bound in bounds]
                lines.add(f"{name}.inside = {' && '.join(tests)};")
            lines.add(f"return {name};")
            return str(lines)

        def field_declarations(bounds: list[Bound]) -> str:
            names = ", ".join(f"t{i}" for i in range(len(split_bounds)))
            sums = f" int32_t {names};" if names else ""
            return f"{offset} at;{sums}{' bool inside;' if bounds else ''}"

        row_terms = terms(operand.row, addressing.back_row)
        if addressing.lane_stride != 0:
            lane_offset = product(addressing.lane_stride, "own")
            row_terms.append(f"(kUniform ? {lane_offset} : {offset}(0))")
        pointer = self._base_pointer(read, addressing)
        tests = [bound_test(b, f"row.t{i} + step.t{i}", text) for i, b in enumerate(split_bounds)]
        tests += ["row.inside"] if row_bounds else []
        tests += ["step.inside"] if step_bounds else []
        body = Lines(self._marks, _INDENT)
        if asynchronous:
            if tests:
                body.add(f"inside = inside && {' && '.join(tests)};")
            body.add(f"return kiln::operand::at({pointer}, row.at, step.at);")
        else:
            for test in tests:
                body.add(f"inside &= {test};")
            body.add(
                f"return kiln::operand::read<kV, kUniform>({pointer}, row.at, step.at, inside);"
            )
        direct_body = Lines(self._marks, _INDENT)
        direct_body.add(f"kiln::direct::load({pointer}, row.at, step.at, to);")
        divides_block_k = f"{steps.inner} % BLOCK_K == 0" if steps.inner else "false"
        return {
            "uniform": "true" if steps.flat else divides_block_k,
            "whole": divides_block_k if len(operand.k.axes) > 1 else "false",
            "row_fields": field_declarations(row_bounds),
            "step_fields": field_declarations(step_bounds),
            "row": part_body("row", row_terms, [bound.row for bound in split_bounds], row_bounds),
            "step": part_body(
                "step",
                terms(operand.k, addressing.back_step),
                [bound.step for bound in split_bounds],
                step_bounds,
            ),
            "body": str(body),
            "direct": str(direct_body),
        }

    def _base_pointer(self, read: OperandRead, addressing: _KernelAddressing) -> str:
        """Return the pointer at which its rows and steps begin."""
        base = addressing.strides.first - addressing.back_row - addressing.back_step
        for stride, index in _stride_index_pairs(addressing.strides, read.operand.batch):
            base += stride * index
        pointer = self._pointer(read)
        return f"{pointer} + ({self.index_text(base)})" if base != 0 else pointer

    def _pointer(self, read: OperandRead) -> str:
        load = read.operand.load
        assert load is not None, "computed operands have no address"
        pointer = self._memory[load.buffer].pointer
        is_encoded = read.operand.is_converted or load.dtype.is_float8
        return f"kiln::operand::held({pointer})" if is_encoded else pointer

    def _computed_operand(self, read: OperandRead, *, asynchronous: bool) -> dict[str, str]:
        """Return the source parts of an operand that needs its indices at every element."""
        operand, parametrizer = read.operand, read.parametrizer
        lines, row = Lines(self._marks, _INDENT), operand.row.name
        lines.add(f"const Index& {row} = row.at;")
        lines.add("const IndexK& k = step.at;")
        if not asynchronous:
            lines.add("if (!inside) return 0;")
        printer = self._printer(lines, {})
        if operand.load is None:
            assert not asynchronous, "computed operands have no address"
            lines.add("Vec<T, kV> element;")
            element = printer.element(read.value, operand.element)
            bits = f"({element}).bits" if operand.element.is_float8 else element
            lines.add(f"element[0] = {bits};")
            lines.add("return element;")
        else:
            if operand.condition is not None:
                condition = printer.value(parametrizer.value(operand.condition))
                lines.add(
                    f"inside = inside && ({condition});"
                    if asynchronous
                    else f"if (!({condition})) return 0;"
                )
            offset = self.index_text(parametrizer.offset(operand.load))
            address = f"{self._pointer(read)} + ({offset})"
            lines.add(
                f"return {address};" if asynchronous else f"return kiln::mma::read<kV>({address});"
            )
        return {
            "uniform": "false",
            "whole": "false",
            "row_fields": "Index at;",
            "step_fields": "IndexK at;",
            "row": f"    return {{{row}}};",
            "step": "    return {k};",
            "body": str(lines),
        }

    # ---- results

    def results(self, position: int) -> tuple[str, list[dict[str, str]]]:
        """Return statements that compute a member's results as ``to.out0``, ``to.out1`` …, and for
        each result its element type, its pointer and its offset."""
        lines = Lines(self._marks, 1)
        printer = self._result_printer(position, lines)
        nodes = self.members[position].contraction.nodes
        results = []
        for result_number, store in enumerate(self.stores[position]):
            dtype = self.buffers[store.buffer].dtype
            with printer.mark_nodes(store.nodes or nodes):
                lines.add(f"to.out{result_number} = {printer.element(store.value, dtype)};")
            pointer = self._memory[store.buffer].pointer
            offset = self.index_text(store.index[0])
            results.append({"element": dtype.cpp, "pointer": pointer, "offset": offset})
        return str(lines), results

    def store(self, position: int) -> str:
        """Return the body of a member's ``store``."""
        lines = Lines(self._marks, _INDENT)
        printer = self._result_printer(position, lines)
        for store in self.stores[position]:
            nodes = store.nodes or self.members[position].contraction.nodes
            with printer.mark_nodes(nodes):
                printer.store(store)
        return str(lines)

    def vectorized_stores(self, position: int) -> VectorStorePrinter:
        """Return the printer of a member's stores for neighbouring columns at once."""
        n = self.members[position].n
        return VectorStorePrinter(
            *(self.stores[position], self._memory, self._names, n.flat),
            has_flat_column=not n.components,
        )

    def _result_printer(self, position: int, lines: Lines) -> ValuePrinter:
        printer = self._printer(lines, {"acc": "acc"})
        stores = self.stores[position]
        printer.allow_fast(store_root(s.value, printer.dtype(s.buffer)) for s in stores)
        return printer

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
        required_for = {operand.load.buffer: "K" for operand in self.operands if operand.load}
        for member in self.members:
            for store in member.contraction.stores:
                required_for[store.buffer] = "points"
        checks = [kernel.check_not_null(buffer, numel) for buffer, numel in required_for.items()]
        for operand in self.operands:
            if operand.load is not None:
                name = kernel.arg_name(operand.load.buffer)
                width = "VECTOR_A" if operand is self.a else "VECTOR_B"
                element = operand.memory_dtype.cpp if operand.is_converted else "T"
                checks.append(
                    f"if (reinterpret_cast<uintptr_t>({name}) % ({width} * sizeof({element})) != 0)"
                    " return hipErrorInvalidValue;"
                )
        return list(dict.fromkeys(checks))


def _stride_index_pairs(strides: Strides, group: IndexGroup) -> list[tuple[Expr, Expr]]:
    steps = strides.steps[group.name]
    indices = (group.flat,) if len(steps) == 1 else group.components
    return list(zip(steps, indices, strict=True))


def bound_test(bound: Bound, value: str, text: Callable[[Expr], str]) -> str:
    """Return the test that a position, as text, is within the input's edges."""
    if bound.limit is None:
        return f"{value} >= 0"
    limit = text(bound.limit)
    if bound.nonnegative:
        return f"uint32_t({value}) < uint32_t({limit})"
    return f"{value} < {limit}"
