"""The model-dependent functions of attention's source: the mask, and the processing of the
result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.codegen.attention import bind_results
from scheduler.codegen.cutedsl.hooks import Hook, make_hook
from scheduler.codegen.cutedsl.nest import NestPrinter
from scheduler.codegen.cutedsl.types import index_type_of, type_name
from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines, Marks, PythonLines
from scheduler.codegen.printing.values import Memory
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Axis

_COLUMNS_PER_PACK = 2  # neighbouring columns that a thread holds


@dataclass(frozen=True)
class ColumnsHook:
    """A function that takes ``width`` neighbouring columns of a row at once, and its call: a
    warpgroup holds the kernel's arguments and the batch's variables (``own``). ``wide``: it takes
    64-bit indices."""

    hook: Hook
    width: int
    wide: bool

    @property
    def definition(self) -> str:
        return self.hook.definition

    @property
    def call(self) -> str:
        values, *index_names = self.hook.parameters
        values_and_indices = (
            values,
            *(f"Index({name})" if self.wide else name for name in index_names),
        )
        arguments = (f"own.{name}" for name in self.hook.arguments)
        return f"{self.hook.name}({', '.join((*values_and_indices, *arguments))})"


@dataclass(frozen=True)
class HookPrinter:
    """Prints the hooks: ``names`` are those of variables and symbols, ``arguments`` the
    kernel's."""

    marks: Marks
    memory: Mapping[str, Memory]
    names: Mapping[str, str]
    arguments: tuple[str, ...]
    wide: bool

    def printer(self, nest: LoopNest, lines: Lines, pack: Pack | None) -> NestPrinter:
        """Return a printer of a nest's statements, in the kernel's names."""
        index_type = index_type_of(wide=self.wide)
        return NestPrinter(nest, lines, self.memory, pack, self.names, index_type=index_type)

    def mask(self, nest: LoopNest, column: Axis, factor: str = "") -> ColumnsHook:
        """Return ``masked``: adds the mask's values, times the constant ``factor``, to scores, or
        removes the scores that it leaves out."""
        width = _pack_width(nest, column)
        lines = PythonLines(self.marks)
        printer = self.printer(nest, lines, Pack(column, width))
        position = "j" if width > 1 else "0"

        def print_masked(statement: Statement) -> None:
            value, values = statement.store.value, printer.values
            with values.mark_nodes(statement.store.nodes):
                text = values.value(value)
                if value.dtype.compute_dtype not in (DType.BOOL, DType.F32):
                    text = f"{type_name(DType.F32)}({text})"
                if value.dtype is DType.BOOL:
                    masked_score = f"select({text}, scores[{position}], LOWEST)"
                else:
                    addend = f"({text}) * {factor}" if factor else text
                    masked_score = f"scores[{position}] + {addend}"
                values.lines.add(f"scores[{position}] = {masked_score}")

        printer.run(nest.statements, print_masked)
        lines.add("return scores", ())
        return self._hook("masked", "scores", "column", width, lines)

    def finish(self, nest: LoopNest, value_depth: Axis, dtype: DType) -> ColumnsHook:
        """Return ``finish``: computes and stores the outputs from the results."""
        width = _pack_width(nest, value_depth)
        lines = PythonLines(self.marks)
        printer = self.printer(nest, lines, Pack(value_depth, width))
        result = f"results[{'j' if width > 1 else '0'}]"
        bind_results(printer, result, dtype)
        printer.run(nest.statements, printer.store)
        return self._hook("finish", "results", "value_depth", width, lines)

    def _hook(
        self, name: str, values: str, column: str, width: int, lines: PythonLines
    ) -> ColumnsHook:
        batch = (variable for variable in self.names.values() if re.fullmatch(r"b\d+", variable))
        parameters = (values, "row", column)
        return ColumnsHook(
            make_hook(name, parameters, lines, (*batch, *self.arguments)), width, self.wide
        )


def _pack_width(nest: LoopNest, axis: Axis) -> int:
    """Return the columns processed at once: two if that makes an access wider."""
    widens = any(nest.is_vectorizable(a, axis, _COLUMNS_PER_PACK) for a in nest.accesses)
    return _COLUMNS_PER_PACK if widens else 1
