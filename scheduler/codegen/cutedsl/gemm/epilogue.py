"""The body of a function that stores results: at one point, or a vector of them along n."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import sympy

from scheduler.codegen.contraction.interface import Member
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.values import ValuePrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.ir.operations import Store
from scheduler.ir.values import Load, Masked, Value, children

FLAT_NAMES = {f"{name}_flat": name for name in ("batch", "m", "n", "k")}
"""Symbols of flat indices, and their names in the source."""


class EpiloguePrinter:
    """Prints a member's stores through ``values``, whose lines are the function's.

    ``is_run`` tells for an access of the member whether that many steps along n are one aligned run
    of memory: these are read and written at once. Values that do not change along n are read once.
    """

    def __init__(
        self,
        values: ValuePrinter,
        member: Member,
        vector: int,
        is_run: Callable[[Load | Store, Member, int], bool],
    ) -> None:
        self._values = values
        self._member = member
        self._vector = vector
        self._is_run = is_run
        self._packed: dict[int, str] = {}  # the lists of stores, by index

    def run(self, stores: Sequence[Store]) -> None:
        """Print the statements of ``stores``, which are over the kernel's indices and arguments."""
        if self._vector == 1:
            for store in stores:
                with self._values.mark_nodes(self._nodes(store)):
                    self._values.store(store)
            return
        own = self._member.contraction.stores
        runs = [self._is_run(store, self._member, self._vector) for store in own]
        self._compute(stores, [place for place, run in enumerate(runs) if run])
        for place, name in self._packed.items():
            store = stores[place]
            text = f"store_pack({self._first(store)}, {name})"
            self._values.lines.add(text, self._nodes(store))

    def elements(self, stores: Sequence[Store]) -> None:
        """Print statements that write nothing, and return for each store the pointer, the index of
        a vector's first element and the list of its elements."""
        self._compute(stores, range(len(stores)))
        made = (f"({self._first(stores[place])}, {name})" for place, name in self._packed.items())
        nodes = dict.fromkeys(node for store in stores for node in self._nodes(store))
        self._values.lines.add(f"return [{', '.join(made)}]", tuple(nodes))

    def _first(self, store: Store) -> str:
        return f"{self._values.pointer(store.buffer)}, {self._values.store_offset(store)}"

    def _compute(self, stores: Sequence[Store], packed: Iterable[int]) -> None:
        """Print the elements of a vector: lists for the stores with indices in ``packed``, all
        others stored one by one."""
        self._read_ahead()
        lines = self._values.lines
        for place in packed:
            self._packed[place] = f"out{len(self._packed)}"
            lines.add(f"{self._packed[place]} = [None] * {self._vector}", ())
        inside = self._vector_lines(stores)
        with lines.block(f"for j in cutlass.range_constexpr({self._vector})"):
            for symbol in self._along_n():
                name = _flat_name(symbol)
                if f"{name}_j" in str(inside):
                    lines.add(f"{name}_j = {name} + j", ())
            lines.extend(inside)

    def _vector_lines(self, stores: Sequence[Store]) -> Lines:
        """Return the statements for each ``j`` of a vector."""
        values, index = self._values, self._values.index
        outside, inside = values.lines, values.lines.new_block()
        along = {symbol.name: f"{_flat_name(symbol)}_j" for symbol in self._along_n()}
        values.lines, values.index = inside, IndexPrinter(names={**FLAT_NAMES, **along})
        with values.scope():
            for place, store in enumerate(stores):
                with values.mark_nodes(self._nodes(store)):
                    self._store(place, store)
        values.lines, values.index = outside, index
        return inside

    def _store(self, place: int, store: Store) -> None:
        packed = self._packed.get(place)
        if packed is None:
            self._values.store(store)
            return
        dtype = self._values.dtype(store.buffer)
        element = self._values.element(store.value, dtype)
        self._values.lines.add(f"{packed}[j] = {element}")

    def _read_ahead(self) -> None:
        """Read runs of memory at once, and values that are the same for the whole vector."""
        values, member = self._values, self._member
        along = {*self._along_n(), member.n.flat, *member.n.components}
        for store in member.contraction.stores:
            with values.mark_nodes(self._nodes(store)):
                for load in _plain_loads(store.value):
                    made = member.parametrizer.value(load)
                    assert isinstance(made, Load)
                    if self._is_run(load, member, self._vector):
                        self._read_pack(made)
                    elif along.isdisjoint(made.index[0].free_symbols):
                        values.value(made)

    def _read_pack(self, load: Load) -> None:
        values = self._values
        if load in values.loads:
            return
        name = f"pack{len(values.loads)}"
        pointer, offset = values.pointer(load.buffer), values.offset(load)
        values.lines.add(f"{name} = load_pack({pointer}, {offset}, {self._vector})")
        values.loads[load] = f"{name}[j]"

    def _along_n(self) -> tuple[sympy.Symbol, ...]:
        """Return the indices that grow by one along a vector: the flat one, and the innermost
        axis'."""
        n = self._member.n
        if not n.components:
            return (n.flat,)
        inner = next(place for place, axis in enumerate(n.axes) if axis is n.innermost)
        return n.flat, n.component(inner)

    def _nodes(self, store: Store) -> tuple[str, ...]:
        return store.nodes or self._member.contraction.nodes


def _flat_name(symbol: sympy.Symbol) -> str:
    name = str(symbol.name)
    return FLAT_NAMES.get(name, name)


def _plain_loads(value: Value) -> Iterator[Load]:
    """Yield the reads that happen at every point and whose index is not itself read from memory."""
    if isinstance(value, Load):
        if not value.indirect:
            yield value
        return
    parts = (value.condition,) if isinstance(value, Masked) else children(value)
    for part in parts:
        yield from _plain_loads(part)
