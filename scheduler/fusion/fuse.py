"""The fusion passes: each operation joins its producers, then pointwise groups join their
readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from scheduler.fusion.cost import inline_rejection, rows_rejection, transpose_rejection, tree_extent
from scheduler.fusion.group import Group, new_group
from scheduler.fusion.inline import inline_views, inlined_value, replace_loads
from scheduler.fusion.legality import Placement, Rejection, direct_loads, join, merge_reindexing
from scheduler.fusion.nodes import FusionDecision, topological_order
from scheduler.fusion.reindex import reindex_pointwise
from scheduler.ir.index.inverse import invert_index
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import BufferKind, GroupKind, Lowered, Operation, Pointwise
from scheduler.ir.values import loads

#: Maximum number of groups visited in a search for a dependency cycle; beyond it, no fusion.
_MAX_VISITS = 2000
#: Maximum number of readers of a buffer considered as siblings of a reduction.
_MAX_SIBLINGS = 4
#: Maximum size and depth of a fused value's tree; shared parts count at each use.
MAX_TREE_PARTS = 1024
MAX_TREE_LEVELS = 96
_TOO_LARGE = (
    f"its expression tree would exceed the limit of {MAX_TREE_PARTS} nodes "
    f"or {MAX_TREE_LEVELS} levels"
)


#: Number of parts and of levels of a tree.
Extent: TypeAlias = tuple[int, int]


class Fusion:
    """Builds groups of operations. ``run`` returns them; ``decisions`` records the reasons.

    ``operations`` are the lowered operations that may be fused with each other; ``read_elsewhere``
    are buffers that other operations read.
    """

    def __init__(
        self,
        lowered: Lowered,
        operations: Sequence[Operation],
        read_elsewhere: Collection[str] = (),
    ) -> None:
        self._operations = operations
        self.buffers = lowered.buffers
        self.hints = {name: info.hint for name, info in lowered.graph.symbols.items()}
        self.sizes = Ranges.from_symbols(lowered.graph.symbols)
        self.decisions: list[FusionDecision] = []
        self.groups: dict[int, Group] = {}
        self.outputs = {
            name for name, b in self.buffers.items() if b.kind is not BufferKind.INTERMEDIATE
        }.union(read_elsewhere)
        self._readers: dict[str, list[int]] = {}
        self._writer: dict[str, int] = {}
        self._extents: dict[str, Extent] = {}
        self._ops: list[Operation] = []

    def run(self) -> list[Group]:
        """Return the groups in a valid execution order."""
        self._ops = inline_views(
            self._operations, self.buffers, self.sizes, self.outputs, self.decisions
        )
        consumers: dict[str, list[Operation]] = {}
        for op in self._ops:
            for name in op.reads:
                consumers.setdefault(name, []).append(op)
        self._consumers = consumers
        for index, op in enumerate(self._ops):
            self._place_operation(op, index)
        for number in sorted(self.groups):
            if number in self.groups and self.groups[number].kind is GroupKind.POINTWISE:
                self._join_readers(self.groups[number])
        for group in [g for g in self.groups.values() if g.kind is GroupKind.SCAN]:
            self._merge_into_scan(group)
        groups = self.groups
        depends = {number: group.depends for number, group in groups.items()}
        # Ties go by the last position in the graph.
        order = topological_order(depends, lambda number: max(groups[number].indices))
        return [groups[number] for number in order]

    # First pass: one operation at a time.

    def _place_operation(self, op: Operation, index: int) -> None:
        for group in self._candidates(op):
            placement = self._try(op, group)
            if isinstance(placement, Rejection):
                self._decide(group.name, op.name, False, placement.reason)
                continue
            self._decide(group.name, op.name, True, "same points, and all values are available")
            self._extend(group, placement)
            group.indices.append(index)
            self._register(placement.op, group)
            return
        group = new_group(index, op, index, self.sizes)
        if op.group_kind is GroupKind.REDUCTION:
            group.inner_members.add(op.name)
        self.groups[index] = group
        self._register(op, group)

    def _candidates(self, op: Operation) -> list[Group]:
        """Return the groups that produce what ``op`` reads: templates first, then reductions,
        latest first; for a reduction also the reductions that read the same buffers."""
        if op.group_kind not in (GroupKind.POINTWISE, GroupKind.REDUCTION, GroupKind.SCAN):
            return []
        producer_numbers = {self._writer[name] for name in op.reads if name in self._writer}
        excluded_kinds = (GroupKind.EXTERN, GroupKind.SCAN, GroupKind.SORT)
        candidates = [
            self.groups[n] for n in producer_numbers if self.groups[n].kind not in excluded_kinds
        ]
        candidates.sort(key=lambda g: (g.is_template, g.kind is not GroupKind.POINTWISE, g.number))
        candidates.reverse()
        if op.group_kind is GroupKind.REDUCTION:
            for name in op.reads:
                for number in self._readers.get(name, [])[-_MAX_SIBLINGS:]:
                    group = self.groups[number]
                    if group.kind is GroupKind.REDUCTION and group not in candidates:
                        candidates.append(group)
        return candidates

    def _try(
        self, op: Operation, group: Group, merged_numbers: Collection[int] = ()
    ) -> Placement | Rejection:
        """Try to place ``op`` in the group; groups in ``merged_numbers`` count as part of it."""
        is_pointwise = op.group_kind is GroupKind.POINTWISE
        if group.is_template and is_pointwise and self._belongs_to_reader(op, group):
            return Rejection("it is inlined into its reader instead")
        if is_pointwise and (rejection := transpose_rejection(op, group, self.buffers)):
            return Rejection(rejection)
        placement = join(op, group, self.buffers)
        if isinstance(placement, Rejection):
            return placement
        if op.group_kind is GroupKind.REDUCTION and group.kind is GroupKind.POINTWISE:
            rejection = self._rows_rejection(group, [op])
            if rejection:
                return Rejection(rejection)
        member_numbers = {group.number, *merged_numbers}
        if self._is_too_large(self._extent(op, member_numbers, self._extents)):
            return Rejection(_TOO_LARGE)
        producer_numbers = {self._writer[name] for name in op.reads if name in self._writer}
        if self._reaches(producer_numbers - member_numbers, group):
            return Rejection(
                "another of its inputs depends on the group: fusion would create a cycle"
            )
        return placement

    def _rows_rejection(self, group: Group, readers: list[Operation]) -> str:
        """Return why these readers should not compute pointwise work that others need, or ""."""
        reduction = next((r for r in readers if r.group_kind is GroupKind.REDUCTION), None)
        names = {reader.name for reader in readers} | {member.name for member in group.members}
        is_read_outside = any(
            name in self.outputs or any(c.name not in names for c in self._consumers.get(name, []))
            for name in group.written()
        )
        return rows_rejection(reduction, self.hints) if reduction and is_read_outside else ""

    def _belongs_to_reader(self, op: Operation, group: Group) -> bool:
        """Whether the readers of ``op`` can compute it themselves while the template result that it
        reads is stored anyway: ``op`` as an epilogue would then add a store."""
        (result,) = op.writes
        readers = self._consumers.get(result, [])
        if result in self.outputs or not all(self._same_points(r, result) for r in readers):
            return False
        produced = set(op.reads) & set(group.written())
        if all(reader.group_kind is GroupKind.REDUCTION for reader in readers):
            return any(name in self.outputs or len(self._consumers[name]) > 1 for name in produced)
        return len(readers) == 1 and any(
            name in self.outputs or not all(self._same_points(r, name) for r in readers_of)
            for name in produced
            for readers_of in (self._consumers[name],)
        )

    def _same_points(self, op: Operation, buffer: str) -> bool:
        """Whether a pointwise operation or a reduction reads each element once per access."""
        if op.group_kind not in (GroupKind.POINTWISE, GroupKind.REDUCTION):
            return False
        size = self.buffers[buffer].size
        read_indices = [load.index for load in direct_loads(op) if load.buffer == buffer]
        return bool(read_indices) and all(
            invert_index(p, size, op.loops) is not None for p in read_indices
        )

    def _extend(self, group: Group, placement: Placement) -> None:
        if placement.regrouped:
            group.members[:] = placement.regrouped
            group.inner_members.update(member.name for member in placement.regrouped)
            group.kind = GroupKind.REDUCTION
        group.outer, group.inner = placement.outer, placement.inner
        group.members.append(placement.op)
        if placement.is_inner:
            group.inner_members.add(placement.op.name)

    def _register(self, op: Operation, group: Group) -> None:
        for name in op.reads:
            if self._writer.get(name, group.number) != group.number:
                group.depends.add(self._writer[name])
            readers = self._readers.setdefault(name, [])
            if group.number not in readers:
                readers.append(group.number)
        extent = self._extent(op, {group.number}, self._extents)
        for name in op.writes:
            self._writer[name] = group.number
            self._extents[name] = extent

    def _extent(
        self, op: Operation, member_numbers: set[int], extents: dict[str, Extent]
    ) -> Extent:
        """The extent of an operation's tree with values of ``member_numbers``' groups inlined."""
        if op.group_kind is not GroupKind.POINTWISE:
            return 1, 1
        (store,) = op.results
        size, depth = tree_extent(store.value)
        inlined_extents = [
            extents[load.buffer]
            for load in loads(store.value)
            if self._writer.get(load.buffer) in member_numbers
        ]
        size += sum(inlined_size for inlined_size, _ in inlined_extents)
        return size, depth + max((levels for _, levels in inlined_extents), default=0)

    def _is_too_large(self, extent: Extent) -> bool:
        return extent[0] > MAX_TREE_PARTS or extent[1] > MAX_TREE_LEVELS

    def _combined_extents(self, group: Group, reader: Group) -> dict[str, Extent] | None:
        """The extents of the reader's trees with the group inlined; None if one is too large."""
        names = (*group.written(), *reader.written())
        combined = {name: self._extents[name] for name in names}
        for member in reader.members:
            extent = self._extent(member, {group.number, reader.number}, combined)
            if self._is_too_large(extent):
                return None
            combined.update(dict.fromkeys(member.writes, extent))
        return combined

    def _reaches(self, starts: Iterable[int], target: Group) -> bool:
        """Whether any of ``starts`` depends on ``target``; True after ``_MAX_VISITS`` groups."""
        first_index = min(target.indices)
        stack = [n for n in starts if max(self.groups[n].indices) > first_index]
        seen = set(stack)
        while stack:
            if len(seen) > _MAX_VISITS:
                return True
            number = stack.pop()
            if number == target.number:
                return True
            for other in self.groups[number].depends:
                if other not in seen and max(self.groups[other].indices) >= first_index:
                    seen.add(other)
                    stack.append(other)
        return False

    # Second pass: pointwise groups into their readers.

    def _join_readers(self, group: Group) -> None:
        numbers = {n for name in group.written() for n in self._readers.get(name, [])}
        readers = [self.groups[n] for n in sorted(numbers - {group.number})]
        for reader in readers:
            if self._merge(group, reader):
                return
        if len(readers) == 1 and not self.outputs.intersection(group.written()):
            self._inline(group, readers[0])
        elif len(readers) > 1:
            for reader in readers:
                self._decide(group.name, reader.name, False, "several kernels read it")

    def _merge(self, group: Group, reader: Group) -> bool:
        if reader.kind not in (GroupKind.POINTWISE, GroupKind.REDUCTION):
            return False
        reindexing = merge_reindexing(group, reader, self.buffers)
        if isinstance(reindexing, Rejection):
            self._decide(group.name, reader.name, False, reindexing.reason)
            return False
        rejection = self._rows_rejection(group, reader.members)
        if rejection:
            self._decide(group.name, reader.name, False, rejection)
            return False
        if self._reaches(reader.depends - {group.number}, group):
            self._decide(
                group.name,
                reader.name,
                False,
                "another kernel between them depends on it: fusion would create a cycle",
            )
            return False
        extents = self._combined_extents(group, reader)
        if extents is None:
            self._decide(group.name, reader.name, False, _TOO_LARGE)
            return False
        self._extents.update(extents)
        axes = (*reader.outer, *reader.inner)
        results = [
            reindex_pointwise(member, reindexing, axes, self.sizes)
            for member in group.members
            if isinstance(member, Pointwise)
        ]
        self._decide(group.name, reader.name, True, "same points, and all values are available")
        reader.members[:0] = results
        if reader.inner:
            reader.inner_members.update(member.name for member in results)
        self._absorb(group, reader)
        return True

    def _inline(self, group: Group, reader: Group) -> None:
        """Inline the group's value into its only reader."""
        results = [name for name in group.written() if self._consumed_outside(name, group)]
        rejection = (
            "it has several results"
            if len(results) != 1
            else inline_rejection(group, results[0], reader, self.buffers, self.hints)
        )
        extents = self._combined_extents(group, reader)
        if rejection or extents is None:
            self._decide(group.name, reader.name, False, rejection or _TOO_LARGE)
            return
        self._extents.update(extents)
        value, nodes = inlined_value(group, results[0])
        inlined_members = [
            replace_loads(member, results[0], value, nodes, group, reader, self.buffers)
            for member in reader.members
        ]
        if any(member is None for member in inlined_members):
            self._decide(
                group.name, reader.name, False, "the positions that it reads cannot be expressed"
            )
            return
        self._decide(group.name, reader.name, True, "inlined into its only reader")
        reader.members[:] = [member for member in inlined_members if member is not None]
        self._absorb(group, reader)
        if reader.kind is GroupKind.POINTWISE:
            self._join_producer(reader)

    def _join_producer(self, reader: Group) -> None:
        """After inlining, join ``reader`` to a producer group that has the same points."""
        for group in self._candidates(reader.members[0]):
            if group.number == reader.number:
                continue
            trial = replace(
                group, members=list(group.members), inner_members=set(group.inner_members)
            )
            placements: list[Placement] = []
            for member in reader.members:
                placement = self._try(member, trial, {reader.number})
                if isinstance(placement, Rejection):
                    break
                self._extend(trial, placement)
                placements.append(placement)
            else:
                self._decide(
                    group.name, reader.name, True, "same points, and all values are available"
                )
                for placement in placements:
                    self._extend(group, placement)
                    self._register(placement.op, group)
                self._absorb(reader, group)
                return

    def _merge_into_scan(self, scan: Group) -> None:
        """Merge the only reader of a scan into the scan as its store, if it is pointwise."""
        (result,) = scan.written()
        numbers = [n for n in self._readers.get(result, []) if n != scan.number]
        if len(numbers) != 1 or result in self.outputs:
            return
        reader = self.groups[numbers[0]]
        if reader.kind is not GroupKind.POINTWISE:
            return
        stored_names = [n for n in reader.written() if self._consumed_outside(n, reader)]
        stored_names += [n for n in reader.written() if n in self.outputs and n not in stored_names]
        rejection = ""
        if len(stored_names) != 1:
            rejection = "a scan can have only one store"
        elif self._reaches(reader.depends - {scan.number}, scan):
            rejection = "another of its inputs depends on the scan: fusion would create a cycle"
        trial = replace(scan, members=list(scan.members))
        for member in reader.members:
            if rejection:
                break
            placement = join(member, trial, self.buffers)
            if isinstance(placement, Rejection):
                rejection = placement.reason
            else:
                trial.members.append(placement.op)
        reason = rejection or "it stores the scan's result"
        self._decide(scan.name, reader.name, not rejection, reason)
        if not rejection:
            scan.members[:] = trial.members
            self._absorb(reader, scan)

    def _consumed_outside(self, name: str, group: Group) -> bool:
        return any(n != group.number for n in self._readers.get(name, []))

    def _absorb(self, group: Group, reader: Group) -> None:
        """Replace ``group`` by ``reader`` in all edges."""
        reader.indices.extend(group.indices)
        reader.depends |= group.depends
        reader.depends.discard(group.number)
        del self.groups[group.number]
        for name in group.written():
            self._writer[name] = reader.number
            self._readers[name] = [n for n in self._readers.get(name, []) if n != group.number]
        for name in group.reads():
            numbers = [n for n in self._readers.get(name, []) if n != group.number]
            self._readers[name] = list(dict.fromkeys([*numbers, reader.number]))
        for name in group.written():
            for number in self._readers[name]:
                consumer = self.groups[number]
                if group.number in consumer.depends:
                    consumer.depends.discard(group.number)
                    consumer.depends.add(reader.number)
        reader.depends.discard(reader.number)

    def _decide(self, producer: str, consumer: str, fused: bool, reason: str) -> None:
        self.decisions.append(FusionDecision(producer, consumer, fused, reason))
