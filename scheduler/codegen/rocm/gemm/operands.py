"""The source of a product's operands: the values of a row and of a step along k, and the read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.addressing import Addressing, Bound, analyse_addressing
from scheduler.codegen.contraction.indices import IndexGroup, Strides
from scheduler.codegen.contraction.interface import OperandRead
from scheduler.codegen.cpp import IndexPrinter, Lines, ValuePrinter
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.ranges import Ranges


@dataclass(frozen=True)
class KernelAddressing:
    """An operand's steps in the kernel's terms. ``back_row`` and ``back_step`` are how far before
    the first element rows and steps begin, as arguments or 0; ``own`` is the stride of the lane's
    k."""

    steps: Addressing
    strides: Strides
    bounds: tuple[Bound, ...]
    back_row: Expr
    back_step: Expr
    own: Expr


def kernel_addressing(
    read: OperandRead, sizes: Ranges, kernel: ROCmTemplateKernel
) -> KernelAddressing | None:
    """Return the addressing; None if the operand is computed element by element, or has another
    form of mask."""
    operand, parametrizer = read.operand, read.parametrizer
    steps = analyse_addressing(operand, sizes)
    if steps is None or operand.load is None:
        return None
    strides = parametrizer.strides(operand.load)
    if strides is None:
        return None

    def back(name: str, least: Expr) -> Expr:
        if not steps.is_32_bit or least == 0:
            return sympy.Integer(0)
        return symbol(kernel.add_scalar(f"{operand.name}_{name}", -least, "i64"))

    along = strides.steps["k"]
    return KernelAddressing(
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
        back("back_row", steps.low_row),
        back("back_step", steps.low_step),
        along[0] if len(along) == 1 else along[_innermost_position(operand.k)],
    )


def _innermost_position(group: IndexGroup) -> int:
    """Return the position of the innermost axis with more than one point."""
    return next((i for i, axis in enumerate(group.axes) if axis is group.innermost), 0)


@dataclass(frozen=True)
class OperandText:
    """Prints operands; ``names`` are the kernel's names for its arguments and indices."""

    names: Mapping[str, str]
    pointers: Mapping[str, str]
    lines: Callable[[], Lines]
    printer: Callable[[Lines], ValuePrinter]

    def context(
        self, read: OperandRead, parts: KernelAddressing | None, *, asynchronous: bool
    ) -> dict[str, str]:
        """Return the template's context for an operand."""
        if parts is None:
            return self._computed_context(read, asynchronous=asynchronous)
        kind = "uint32_t" if parts.steps.is_32_bit else "int64_t"
        split = [bound for bound in parts.bounds if bound.row.free_symbols and bound.step != 0]
        once = [bound for bound in parts.bounds if bound.step == 0]
        each = [b for b in parts.bounds if b.step != 0 and not b.row.free_symbols]
        tests = [self._test(bound, f"row.t{i} + step.t{i}") for i, bound in enumerate(split)] + [
            f"{part}.inside" for part, bounds in (("row", once), ("step", each)) if bounds
        ]
        return {
            "uniform": self._uniform(parts),
            "whole": self._whole(read, parts),
            "row_fields": _fields(kind, len(split), tested=bool(once)),
            "step_fields": _fields(kind, len(split), tested=bool(each)),
            "row": self._row(read, parts, kind, split, once),
            "step": self._step(read, parts, kind, split, each),
            "body": self._body(read, parts, tests, asynchronous=asynchronous),
            "direct": self._direct(read, parts),
        }

    def _uniform(self, parts: KernelAddressing) -> str:
        if parts.steps.flat:
            return "true"
        return f"{parts.steps.inner} % BLOCK_K == 0" if parts.steps.inner else "false"

    def _whole(self, read: OperandRead, parts: KernelAddressing) -> str:
        several = len(read.operand.k.axes) > 1
        return f"{parts.steps.inner} % BLOCK_K == 0" if several and parts.steps.inner else "false"

    def _row(
        self,
        read: OperandRead,
        parts: KernelAddressing,
        kind: str,
        split: list[Bound],
        once: list[Bound],
    ) -> str:
        lines = self.lines()
        terms = self._terms(read.operand.row.name, parts, kind)
        if parts.back_row != 0:
            terms.append(f"{kind}({self._text(parts.back_row)})")
        if parts.own != 0:
            own = self._product(kind, parts.own, "own")
            terms.append(f"(kUniform ? {own} : {kind}(0))")
        lines.add("Row row;")
        lines.add(f"row.at = {_byte_offset(kind, terms, read)};")
        for i, bound in enumerate(split):
            lines.add(f"row.t{i} = int32_t({self._text(bound.row)});")
        if once:
            tests = [self._test(bound, self._text(bound.row)) for bound in once]
            lines.add(f"row.inside = {' && '.join(tests)};")
        lines.add("return row;")
        return str(lines)

    def _step(
        self,
        read: OperandRead,
        parts: KernelAddressing,
        kind: str,
        split: list[Bound],
        each: list[Bound],
    ) -> str:
        lines = self.lines()
        terms = self._terms("k", parts, kind)
        if parts.back_step != 0:
            terms.append(f"{kind}({self._text(parts.back_step)})")
        lines.add("Step step;")
        lines.add(f"step.at = {_byte_offset(kind, terms, read)};")
        for i, bound in enumerate(split):
            lines.add(f"step.t{i} = int32_t({self._text(bound.step)});")
        if each:
            tests = [self._test(bound, self._text(bound.row + bound.step)) for bound in each]
            lines.add(f"step.inside = {' && '.join(tests)};")
        lines.add("return step;")
        return str(lines)

    def _body(
        self, read: OperandRead, parts: KernelAddressing, tests: list[str], *, asynchronous: bool
    ) -> str:
        lines, place = self.lines(), self._base_pointer(read, parts)
        if asynchronous:
            if tests:
                lines.add(f"inside = inside && {' && '.join(tests)};")
            lines.add(f"return kiln::operand::at({place}, row.at, step.at);")
            return str(lines)
        for test in tests:
            lines.add(f"inside &= {test};")
        lines.add(f"return kiln::operand::read<kV, kUniform>({place}, row.at, step.at, inside);")
        return str(lines)

    def _direct(self, read: OperandRead, parts: KernelAddressing) -> str:
        lines = self.lines()
        lines.add(f"kiln::direct::load({self._base_pointer(read, parts)}, row.at, step.at, to);")
        return str(lines)

    def _base_pointer(self, read: OperandRead, parts: KernelAddressing) -> str:
        """Return the pointer at which its rows and steps begin."""
        assert read.operand.load is not None, "computed operands have no address"
        base = parts.strides.first - parts.back_row - parts.back_step
        for stride, index in self._stride_index_pairs("batch", parts, read.operand.batch.name):
            base += stride * index
        pointer = self._pointer(read)
        return f"{pointer} + ({self._text(base)})" if base != 0 else pointer

    def _computed_context(self, read: OperandRead, *, asynchronous: bool) -> dict[str, str]:
        operand, parametrizer = read.operand, read.parametrizer
        lines = self.lines()
        lines.add(f"const Index& {operand.row.name} = row.at;")
        lines.add("const IndexK& k = step.at;")
        if not asynchronous:
            lines.add("if (!inside) return 0;")
        printer = self.printer(lines)
        if operand.load is None:
            assert not asynchronous, "computed operands have no address"
            lines.add("Vec<T, kV> element;")
            element = printer.element(read.value, operand.element)
            held = f"({element}).bits" if operand.element.is_float8 else element
            lines.add(f"element[0] = {held};")
            lines.add("return element;")
            return {**_per_element_context(operand.row.name), "body": str(lines)}
        if operand.condition is not None:
            condition = printer.value(parametrizer.value(operand.condition))
            lines.add(
                f"inside = inside && ({condition});"
                if asynchronous
                else f"if (!({condition})) return 0;"
            )
        place = f"{self._pointer(read)} + ("
        place += f"{self._text(parametrizer.offset(operand.load))})"
        lines.add(f"return {place};" if asynchronous else f"return kiln::mma::read<kV>({place});")
        return {**_per_element_context(operand.row.name), "body": str(lines)}

    def _pointer(self, read: OperandRead) -> str:
        load = read.operand.load
        assert load is not None, "computed operands have no address"
        pointer = self.pointers[load.buffer]
        held = read.operand.is_converted or load.dtype.is_float8
        return f"kiln::operand::held({pointer})" if held else pointer

    def _stride_index_pairs(
        self, group: str, parts: KernelAddressing, name: str
    ) -> list[tuple[Expr, Expr]]:
        strides = parts.strides.steps[group]
        if len(strides) == 1:
            return [(strides[0], symbol(f"{name}_flat"))]
        return [(stride, symbol(f"{name}_i{i}")) for i, stride in enumerate(strides)]

    def _terms(self, group: str, parts: KernelAddressing, kind: str) -> list[str]:
        return [
            self._product(kind, stride, self._text(index))
            for stride, index in self._stride_index_pairs(group, parts, group)
            if stride != 0
        ]

    def _product(self, kind: str, stride: Expr, index: str) -> str:
        factor = f"{kind}({self._text(stride)}) * " if stride != 1 else ""
        return f"{factor}{kind}({index})"

    def _test(self, bound: Bound, value: str) -> str:
        return bound_test(bound, value, self._text)

    def _text(self, expr: Expr) -> str:
        return IndexPrinter(names=self.names)(expr)


def bound_test(bound: Bound, value: str, text: Callable[[Expr], str]) -> str:
    """Return the test that a position, as text, is within the input's edges."""
    if bound.limit is None:
        return f"{value} >= 0"
    limit = text(bound.limit)
    if bound.nonnegative:
        return f"uint32_t({value}) < uint32_t({limit})"
    return f"{value} < {limit}"


def _fields(kind: str, tests: int, *, tested: bool) -> str:
    sums = f" int32_t {', '.join(f't{i}' for i in range(tests))};" if tests else ""
    return f"{kind} at;{sums}{' bool inside;' if tested else ''}"


def _byte_offset(kind: str, terms: list[str], read: OperandRead) -> str:
    """Return offsets; those of 32 bits are in bytes."""
    total = " + ".join(terms) or "0"
    memory = "Memory" if read.operand.is_converted else "T"
    return f"({total}) * sizeof({memory})" if kind == "uint32_t" else total


def _per_element_context(row: str) -> dict[str, str]:
    """Return the context of an operand that needs its indices at every element."""
    return {
        "uniform": "false",
        "whole": "false",
        "row_fields": "Index at;",
        "step_fields": "IndexK at;",
        "row": f"    return {{{row}}};",
        "step": "    return {k};",
    }
