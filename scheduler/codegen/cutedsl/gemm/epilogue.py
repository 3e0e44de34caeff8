"""The body of a function that stores results: at one point, or a vector of them along n."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import sympy

from scheduler.codegen.contraction.interface import Member
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.values import ValuePrinter
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

    def run(self, stores: Sequence[Store]) -> None:
        """Print the statements of ``stores``, which are over the kernel's indices and arguments."""
        if self._vector == 1:
            for store in stores:
                with self._values.mark_nodes(self._nodes(store)):
                    self._values.store(store)
            return
        originals = self._member.contraction.stores
        contiguous = [self._is_run(store, self._member, self._vector) for store in originals]
        list_names = self._compute(stores, [i for i, is_run in enumerate(contiguous) if is_run])
        for position, name in list_names.items():
            store = stores[position]
            text = f"store_pack({self._first(store)}, {name})"
            self._values.lines.add(text, self._nodes(store))

    def elements(self, stores: Sequence[Store]) -> None:
        """Print statements that write nothing, and return for each store the pointer, the index of
        a vector's first element and the list of its elements."""
        list_names = self._compute(stores, range(len(stores)))
        vectors = (f"({self._first(stores[i])}, {name})" for i, name in list_names.items())
        nodes = dict.fromkeys(node for store in stores for node in self._nodes(store))
        self._values.lines.add(f"return [{', '.join(vectors)}]", tuple(nodes))

    def _first(self, store: Store) -> str:
        return f"{self._values.pointer(store.buffer)}, {self._values.store_offset(store)}"

    def _compute(self, stores: Sequence[Store], packed_positions: Iterable[int]) -> dict[int, str]:
        """Print the elements of a vector: lists for the stores in ``packed_positions``, all others
        stored one by one. Returns the names of the lists."""
        self._read_ahead()
        values, outer_lines, outer_index = self._values, self._values.lines, self._values.index
        list_names = {position: f"out{i}" for i, position in enumerate(packed_positions)}
        for name in list_names.values():
            outer_lines.add(f"{name} = [None] * {self._vector}", ())
        body = outer_lines.new_block()
        names_along_n = {symbol.name: f"{_flat_name(symbol)}_j" for symbol in self._along_n()}
        values.lines, values.index = body, IndexPrinter(names={**FLAT_NAMES, **names_along_n})
        with values.scope():
            for position, store in enumerate(stores):
                with values.mark_nodes(self._nodes(store)):
                    if position not in list_names:
                        values.store(store)
                        continue
                    element = values.element(store.value, values.dtype(store.buffer))
                    body.add(f"{list_names[position]}[j] = {element}")
        values.lines, values.index = outer_lines, outer_index
        with outer_lines.block(f"for j in cutlass.range_constexpr({self._vector})"):
            for symbol in self._along_n():
                name = _flat_name(symbol)
                if f"{name}_j" in str(body):
                    outer_lines.add(f"{name}_j = {name} + j", ())
            outer_lines.extend(body)
        return list_names

    def _read_ahead(self) -> None:
        """Read runs of memory at once, and values that are the same for the whole vector."""
        values, member = self._values, self._member
        vars_along_n = {*self._along_n(), member.n.flat, *member.n.components}
        for store in member.contraction.stores:
            with values.mark_nodes(self._nodes(store)):
                for original in _plain_loads(store.value):
                    load = member.parametrizer.value(original)
                    assert isinstance(load, Load)
                    if not self._is_run(original, member, self._vector):
                        if vars_along_n.isdisjoint(load.index[0].free_symbols):
                            values.value(load)
                    elif load not in values.loads:
                        name = f"pack{len(values.loads)}"
                        address = f"{values.pointer(load.buffer)}, {values.offset(load)}"
                        values.lines.add(f"{name} = load_pack({address}, {self._vector})")
                        values.loads[load] = f"{name}[j]"

    def _along_n(self) -> tuple[sympy.Symbol, ...]:
        """Return the indices that grow by one along a vector: the flat one, and the innermost
        axis'."""
        n = self._member.n
        if not n.components:
            return (n.flat,)
        innermost = next(i for i, axis in enumerate(n.axes) if axis is n.innermost)
        return n.flat, n.component(innermost)

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
    unconditional = (value.condition,) if isinstance(value, Masked) else children(value)
    for child in unconditional:
        yield from _plain_loads(child)
