"""Stores of neighbouring columns of a product: packs written as one element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy

from scheduler.codegen.cpp import IndexPrinter, Lines, Marks, Memory, ValuePrinter
from scheduler.codegen.printing.precision import Root, store_root
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Store
from scheduler.ir.values import Indirect, Load, Masked, Value, children, walk

_WIDTH = "W"
_BODY = 2


@dataclass(frozen=True)
class _VectorAccess:
    """An access to W neighbours: its buffer, and the steps of the first neighbour's offset."""

    buffer: str
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
        self._packed = {
            store.buffer: run
            for store in stores
            if whole and (run := self._run(store.buffer, store.index[0])) is not None
        }
        self._loads: dict[Load, _VectorAccess] = {}
        for store in stores if self._packed else ():
            for load in _unconditional_loads(store.value):
                run = self._run_of(load)
                if run is not None:
                    self._loads[load] = run

    @property
    def has_vectors(self) -> bool:
        """Whether a store writes several neighbours at once."""
        return bool(self._packed)

    def condition(self) -> str:
        """Return the condition that all runs are at multiples of their size, for the kernel's
        arguments."""
        if not self.has_vectors:
            return "false"
        index = IndexPrinter(names=self._names)
        texts = []
        for run in (*self._packed.values(), *self._loads.values()):
            pointer = self._memory[run.buffer].pointer
            steps = " | ".join(index(step) for step in run.steps) or "0"
            texts.append(f"kiln::mma::is_run<{_WIDTH}>({pointer}, {steps})")
        return " && ".join(dict.fromkeys(texts))

    def body(self, marks: Marks, nodes: tuple[str, ...]) -> str:
        """Return the statements that store the runs from column ``n``, of the results ``acc``."""
        lines = Lines(marks, _BODY)
        printer = self._printer(lines, "n.flat")
        packs: dict[Load, str] = {}
        for load in self._loads:
            with printer.mark_nodes(nodes):
                name = f"pack{len(packs)}"
                place = f"{self._memory[load.buffer].pointer} + ({printer.offset(load)})"
                lines.add(f"const auto {name} = kiln::mma::load_run<{_WIDTH}>({place});")
                packs[load] = f"{name}[j]"
        outs = {buffer: f"out{i}" for i, buffer in enumerate(self._packed)}
        for buffer, name in outs.items():
            element = self._memory[buffer].buffer.dtype.cpp
            lines.add(f"kiln::Pack<{element}, {_WIDTH}> {name};", ())
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int j = 0; j < {_WIDTH}; ++j)"):
            each = self._printer(lines, "(n.flat + j)", packs)
            each.allow_fast(self._roots())
            for store in self._stores:
                with each.mark_nodes(store.nodes or nodes):
                    self._element(each, store, outs.get(store.buffer))
        for store in self._stores:
            if store.buffer in outs:
                with printer.mark_nodes(store.nodes or nodes):
                    place = (
                        f"{self._memory[store.buffer].pointer} + ({printer.store_offset(store)})"
                    )
                    lines.add(f"kiln::mma::store_run({place}, {outs[store.buffer]});")
        return str(lines)

    def _roots(self) -> list[Root]:
        return [
            store_root(one.value, self._memory[one.buffer].buffer.dtype) for one in self._stores
        ]

    def _element(self, printer: ValuePrinter, store: Store, out: str | None) -> None:
        if out is None:
            printer.store(store)
            return
        element = printer.element(store.value, self._memory[store.buffer].buffer.dtype)
        printer.lines.add(printer.assignment(f"{out}[j]", element))

    def _printer(
        self, lines: Lines, column: str, packs: Mapping[Load, str] | None = None
    ) -> ValuePrinter:
        address: Callable[[str, tuple[Expr, ...]], Expr] = lambda _, index: index[0]  # noqa: E731
        return ValuePrinter(
            lines,
            self._memory,
            {"acc": "acc[j]"},
            index=IndexPrinter(names={**self._names, self._column.name: column}),
            loads=packs,
            address=address,
            prefix="tmp" if packs is not None else "at",
        )

    def _run_of(self, load: Load) -> _VectorAccess | None:
        if any(self._varies_by_column(part) for part in load.indirect):
            return None
        return self._run(load.buffer, load.index[0])

    def _varies_by_column(self, part: Indirect) -> bool:
        return any(
            isinstance(read, Load) and self._column in read.index[0].free_symbols
            for read in walk(part.value)
        )

    def _run(self, buffer: str, offset: Expr) -> _VectorAccess | None:
        """Return the access if the offset is the column plus multiples of steps."""
        rest = sympy.expand(offset - self._column)
        if self._column in rest.free_symbols:
            return None
        steps = []
        for term in sympy.Add.make_args(rest):
            if term == 0:
                continue
            if not all(part.is_Symbol or part.is_Integer for part in sympy.Mul.make_args(term)):
                return None
            found = [part for part in sympy.Mul.make_args(term) if self._is_step(part)]
            if not found:
                return None
            steps.append(found[0])
        return _VectorAccess(buffer, tuple(dict.fromkeys(steps)))

    def _is_step(self, part: Expr) -> bool:
        """Whether the part is an argument or a number: the kernel's own indices vary."""
        if part.is_Integer:
            return True
        text = self._names.get(part.name, "")
        return text.startswith("p.")


def _unconditional_loads(value: Value) -> Iterator[Load]:
    """Yield reads that are not conditional."""
    if isinstance(value, Load):
        yield value
    if isinstance(value, Masked):
        yield from _unconditional_loads(value.condition)
        return
    for child in children(value):
        yield from _unconditional_loads(child)
