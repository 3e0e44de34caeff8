"""Layered layout of a graph's boxes, one layout per module.

The layout of a module depends only on what is directly in it, so it stays the same when a module
is opened or closed. It is topological: rows of items from top to bottom, ordered so that few wires
cross. The browser, which knows the sizes of boxes, computes the coordinates.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

_SWEEPS = 6
_LONGEST_ROUTE = 100  # rows: a longer wire runs straight, behind the boxes

Wire: TypeAlias = tuple[str, str, str]
"""Two items of adjacent rows, and the box where the wire begins."""


@dataclass(frozen=True)
class Box:
    """A kernel or a call of the model, in execution order; ``module`` is the path of its module."""

    name: str
    module: str


@dataclass(frozen=True)
class ModuleLayout:
    """Rows of items: boxes ``b:<name>``, modules ``m:<path>``, bends of wires ``w:<number>``, and
    the ends of wires that enter and leave the module, ``i:<box>`` and ``o:<box>``. ``direct`` wires
    connect any rows."""

    rows: tuple[tuple[str, ...], ...]
    wires: tuple[Wire, ...]
    direct: tuple[Wire, ...]


@dataclass(frozen=True)
class Layout:
    """The layout of each module by its path; ``root`` is the outermost one with several items."""

    root: str
    modules: Mapping[str, ModuleLayout]


@dataclass
class _Module:
    """Items in execution order, and the wires among them by the box where they begin."""

    items: dict[str, None] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    readers: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def connect(self, source: str, first: str, last: str) -> None:
        self.sources[source] = first
        self.readers[source][last] = None


def layered_layout(boxes: Sequence[Box], edges: Iterable[tuple[str, str]]) -> Layout:
    """Return the layout of boxes with these edges: names of a box and of one that reads its
    result."""
    root, modules, paths = _module_tree(boxes)
    for source, reader in dict.fromkeys(edges):
        if source != reader:
            _connect(modules, root, source, paths[source], paths[reader])
    return Layout(root, {path: _module_layout(module) for path, module in modules.items()})


def _module_tree(
    boxes: Sequence[Box],
) -> tuple[str, dict[str, _Module], dict[str, tuple[str, ...]]]:
    """Return the root, the modules, and for each box the items from the root down to it. A module
    with a single item is left out: its item takes its place."""
    children: dict[str, dict[str, None]] = defaultdict(dict)
    for box in boxes:
        parts = box.module.split(".") if box.module else []
        above = ["", *(".".join(parts[: end + 1]) for end in range(len(parts)))]
        for outer, inner in pairwise(above):
            children[outer][f"m:{inner}"] = None
        children[above[-1]][f"b:{box.name}"] = None

    def only_item(item: str) -> str:
        while item.startswith("m:") and len(inner := children[item[2:]]) == 1:
            [item] = inner
        return item

    outermost = only_item("m:")
    root = outermost[2:] if outermost.startswith("m:") else ""
    modules: dict[str, _Module] = {}
    paths: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    while waiting:
        module, above_items = waiting.pop()
        items = dict.fromkeys(only_item(item) for item in children[module])
        modules[module] = _Module(items)
        for item in items:
            path = (*above_items, item)
            if item.startswith("m:"):
                waiting.append((item[2:], path))
            else:
                paths[item[2:]] = path
    return root, modules, paths


def _connect(
    modules: Mapping[str, _Module],
    root: str,
    source: str,
    start: Sequence[str],
    end: Sequence[str],
) -> None:
    """Add the wire from a box, ``source``, to each module that it passes. ``start`` and ``end`` are
    the items from the root down to the two boxes."""
    shared = next(
        at for at, (one, other) in enumerate(zip(start, end, strict=False)) if one != other
    )
    module = start[shared - 1][2:] if shared else root
    modules[module].connect(source, start[shared], end[shared])
    for outer, inner in pairwise(start[shared:]):
        modules[outer[2:]].connect(source, inner, f"o:{source}")
    for outer, inner in pairwise(end[shared:]):
        modules[outer[2:]].connect(f"i:{source}", f"i:{source}", inner)


def _module_layout(module: _Module) -> ModuleLayout:
    ranks = _ranks(module)
    rows: list[list[str]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for item, rank in ranks.items():
        rows[rank].append(item)
    wires: list[Wire] = []
    direct: list[Wire] = []
    bends = 0
    for source, readers in module.readers.items():
        first = module.sources[source]
        box, bend = source.removeprefix("i:"), first
        routed: list[Wire] = []
        for reader in readers:
            length = ranks[reader] - ranks[first]
            (routed if 0 < length <= _LONGEST_ROUTE else direct).append((first, reader, box))
        last = max((ranks[reader] for _, reader, _ in routed), default=0)
        for rank in range(ranks[first] + 1, last + 1):
            wires += [(bend, reader, box) for _, reader, _ in routed if ranks[reader] == rank]
            if rank < last:
                before, bend = bend, f"w:{bends}"
                bends += 1
                rows[rank].append(bend)
                wires.append((before, bend, box))
    ordered = _order(rows, wires)
    return ModuleLayout(tuple(map(tuple, ordered)), tuple(wires), tuple(direct))


def _ranks(module: _Module) -> dict[str, int]:
    """Return the row of each item: below what it reads, and an item that reads nothing right above
    its first reader. Wires against the execution order do not count."""
    places = {item: place for place, item in enumerate(module.items)}
    entering = [item for item in module.sources.values() if item.startswith("i:")]
    top = 1 if entering else 0
    readers: dict[str, list[str]] = {item: [] for item in places}
    ranks = dict.fromkeys(entering, 0) | dict.fromkeys(places, top)
    reads_item = set()
    for source, first in module.sources.items():
        if first in places:
            later = [
                reader
                for reader in module.readers[source]
                if reader in places and places[first] < places[reader]
            ]
            readers[first] += later
            reads_item.update(later)
        else:
            reads_item.update(module.readers[source])
    for item in places:
        for reader in readers[item]:
            ranks[reader] = max(ranks[reader], ranks[item] + 1)
    for item in places:
        if item not in reads_item and readers[item]:
            ranks[item] = min(ranks[reader] for reader in readers[item]) - 1
    bottom = max(ranks.values(), default=-1) + 1
    leaving = (item for readers in module.readers.values() for item in readers)
    return ranks | {item: bottom for item in leaving if item.startswith("o:")}


def _order(rows: Sequence[Sequence[str]], wires: Iterable[Wire]) -> list[list[str]]:
    """Return the rows, ordered by the mean position of the neighbours in the row above and below in
    turn; of all sweeps, the order with the fewest crossings."""
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for first, last, _ in wires:
        below[first].append(last)
        above[last].append(first)
    best = ordered = [list(row) for row in rows]
    fewest = _crossings(ordered, below)
    for _ in range(_SWEEPS):
        if not fewest:
            break
        ordered = _sweep(_sweep(ordered, above)[::-1], below)[::-1]
        crossings = _crossings(ordered, below)
        if crossings < fewest:
            best, fewest = ordered, crossings
    return best


def _sweep(
    rows: Iterable[Sequence[str]], neighbours: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Return each row ordered by the neighbours in the row before it."""
    ordered: list[list[str]] = []
    places: dict[str, float] = {}
    for row in rows:
        means = {item: float(place) for place, item in enumerate(row)}
        for item in row:
            known = [places[other] for other in neighbours.get(item, ())]
            if known:
                means[item] = sum(known) / len(known)
        ordered.append(sorted(row, key=means.__getitem__))
        places = {item: place for place, item in enumerate(ordered[-1])}
    return ordered


def _crossings(rows: Iterable[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Return how often wires between adjacent rows cross."""
    count = 0
    for row, next_row in pairwise(rows):
        places = {item: place for place, item in enumerate(next_row)}
        ends: list[int] = []
        for item in row:
            mine = sorted(places[other] for other in below.get(item, ()))
            count += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return count
