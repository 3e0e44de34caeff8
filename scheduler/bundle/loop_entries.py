"""The manifest's entries for the loops of a schedule."""

from __future__ import annotations

from scheduler.bundle.manifest import CarriedEntry, LoopEntry, SliceEntry
from scheduler.codegen.program import Position
from scheduler.ir.operations import LoopBegin, LoopEnd, Operation


class LoopCollector:
    """Collects loop entries from the loop markers of a schedule, in order."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, Position]] = []
        self._ended: dict[str, LoopEntry] = {}

    def note(self, mark: Operation, place: Position) -> None:
        """Record a marker; ``place`` is how many calls and externs come before it."""
        if isinstance(mark, LoopBegin):
            self._begun.append((mark.name, place))
            return
        assert isinstance(mark, LoopEnd)
        begun = dict(self._begun)[mark.begin.name]
        self._ended[mark.begin.name] = _entry(mark.begin, mark, begun, place)

    @property
    def entries(self) -> tuple[LoopEntry, ...]:
        """All entries, in the order in which the loops begin."""
        return tuple(self._ended[name] for name, _ in self._begun)


def _entry(begin: LoopBegin, end: LoopEnd, begun: Position, ended: Position) -> LoopEntry:
    pairs = zip(begin.carried, end.carried, strict=True)
    return LoopEntry(
        node=begin.node,
        op=begin.op,
        begin=begun,
        end=ended,
        carried=tuple(CarriedEntry(*first, *last) for first, last in pairs),
        steps=begin.steps,
        condition=begin.condition,
        again=end.condition,
        reads=tuple(SliceEntry(whole, part) for whole, part in begin.slices),
        first=begin.first,
        makes=tuple(SliceEntry(whole, part) for part, whole in end.slices),
    )
