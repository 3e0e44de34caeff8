"""Stores of neighbouring columns of a product: packs written as one element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy

from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.printing.precision import store_root
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Store
from scheduler.ir.values import Load, Masked, Value, children, walk

_WIDTH = "W"
_BODY = 2


@dataclass(frozen=True)
class _VectorAccess:
    """An access to W neighbours: its pointer, and the steps of the first neighbour's offset."""

    pointer: str
    steps: tuple[Expr, ...]


class VectorStorePrinter:
    """Prints a member's stores, each with its offset as the only index (a ``Parametrizer``'s).

    ``column`` stands for the flat column; if the kernel has indices along several axes of n
    (``whole`` is False), neighbours have no common offset and each is stored alone.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        memory: Mapping[str, Memory],
        names: Mapping[str, str],
        column: sympy.Symbol,
        *,
        whole: bool,
    ) -> None:
        self._stores = stores
        self._memory = memory
        self._names = names
        self._column = column
        accesses = ((s.buffer, self._vector_access(s.buffer, s.index[0])) for s in stores if whole)
        self._packed = {buffer: access for buffer, access in accesses if access is not None}
        self._loads: dict[Load, _VectorAccess] = {}
        for store in stores if self._packed else ():
            for load in _unconditional_loads(store.value):
                indices = (read for part in load.indirect for read in walk(part.value))
                if any(isinstance(i, Load) and column in i.index[0].free_symbols for i in indices):
                    continue
                access = self._vector_access(load.buffer, load.index[0])
                if access is not None:
                    self._loads[load] = access

    @property
    def has_vectors(self) -> bool:
        """Whether a store writes several neighbours at once."""
        return bool(self._packed)

    def condition(self) -> str:
        """Return the condition that all vectors are at multiples of their size, for the kernel's
        arguments."""
        if not self.has_vectors:
            return "false"
        index = IndexPrinter(names=self._names)
        texts = []
        for access in (*self._packed.values(), *self._loads.values()):
            steps = " | ".join(index(step) for step in access.steps) or "0"
            texts.append(f"kiln::mma::is_run<{_WIDTH}>({access.pointer}, {steps})")
        return " && ".join(dict.fromkeys(texts))

    def body(self, marks: Marks, nodes: tuple[str, ...]) -> str:
        """Return the statements that store the vectors from column ``n``, of the results
        ``acc``."""
        lines = Lines(marks, _BODY)
        printer = self._printer(lines, "n.flat", {}, "at")
        packs: dict[Load, str] = {}
        for load, access in self._loads.items():
            with printer.mark_nodes(nodes):
                name = f"pack{len(packs)}"
                place = f"{access.pointer} + ({printer.offset(load)})"
                lines.add(f"const auto {name} = kiln::mma::load_run<{_WIDTH}>({place});")
                packs[load] = f"{name}[j]"
        results = {buffer: f"out{i}" for i, buffer in enumerate(self._packed)}
        for buffer, name in results.items():
            lines.add(f"kiln::Pack<{printer.dtype(buffer).cpp}, {_WIDTH}> {name};", ())
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int j = 0; j < {_WIDTH}; ++j)"):
            each = self._printer(lines, "(n.flat + j)", packs, "tmp")
            each.allow_fast(store_root(s.value, each.dtype(s.buffer)) for s in self._stores)
            for store in self._stores:
                with each.mark_nodes(store.nodes or nodes):
                    if store.buffer not in results:
                        each.store(store)
                        continue
                    element = each.element(store.value, each.dtype(store.buffer))
                    lines.add(each.assignment(f"{results[store.buffer]}[j]", element))
        for store in (s for s in self._stores if s.buffer in results):
            with printer.mark_nodes(store.nodes or nodes):
                place = f"{printer.pointer(store.buffer)} + ({printer.store_offset(store)})"
                lines.add(f"kiln::mma::store_run({place}, {results[store.buffer]});")
        return str(lines)

    def _printer(
        self, lines: Lines, column: str, loads: Mapping[Load, str], prefix: str
    ) -> ValuePrinter:
        return ValuePrinter(
            lines,
            self._memory,
            {"acc": "acc[j]"},
            index=IndexPrinter(names={**self._names, self._column.name: column}),
            loads=loads,
            address=lambda _, index: index[0],
            prefix=prefix,
        )

    def _vector_access(self, buffer: str, offset: Expr) -> _VectorAccess | None:
        """Return the access if the offset is the column plus multiples of steps."""
        rest = sympy.expand(offset - self._column)
        if self._column in rest.free_symbols:
            return None
        found = []
        for term in sympy.Add.make_args(rest):
            factors = sympy.Mul.make_args(term)
            # A step is an argument or a number: the kernel's own indices vary.
            steps = [
                f
                for f in factors
                if f.is_Integer or (f.is_Symbol and self._names.get(f.name, "").startswith("p."))
            ]
            if not all(factor.is_Symbol or factor.is_Integer for factor in factors) or not steps:
                return None
            if term != 0:
                found.append(steps[0])
        return _VectorAccess(self._memory[buffer].pointer, tuple(dict.fromkeys(found)))


def _unconditional_loads(value: Value) -> Iterator[Load]:
    """Yield reads that are not conditional."""
    if isinstance(value, Load):
        yield value
    if isinstance(value, Masked):
        yield from _unconditional_loads(value.condition)
        return
    for child in children(value):
        yield from _unconditional_loads(child)
