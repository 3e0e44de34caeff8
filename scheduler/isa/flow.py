"""Basic blocks and natural loops from branches.

Dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions ``first`` to ``end`` (exclusive) that run in sequence. ``label`` is "" without a
    label; ``successors`` are numbers of blocks."""

    label: str
    first: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header's block, all its blocks, its depth (1 outermost), and its parent
    loop (an index, or -1)."""

    header: int
    blocks: frozenset[int]
    depth: int
    parent: int
    innermost: bool


def build_blocks(
    count: int,
    branches: Mapping[int, int | None],
    ends: Set[int],
    labels: Mapping[str, int],
) -> tuple[Block, ...]:
    """Cut ``count`` instructions into blocks.

    ``branches`` maps each branch to the instruction it jumps to (None: out of the function);
    ``ends`` are the instructions that do not fall through.
    """
    starts = {0, *labels.values(), *(index + 1 for index in branches), *(i + 1 for i in ends)}
    order = sorted(start for start in starts if start < count)
    number = {start: position for position, start in enumerate(order)}
    names: dict[int, str] = {}
    for name, start in labels.items():
        names.setdefault(start, name)
    result = []
    for position, start in enumerate(order):
        end = order[position + 1] if position + 1 < len(order) else count
        last = end - 1
        successors = []
        if last not in ends and end in number:
            successors.append(number[end])
        target = branches.get(last)
        if target is not None and target in number and number[target] not in successors:
            successors.append(number[target])
        result.append(Block(names.get(start, ""), start, end, tuple(successors)))
    return tuple(result)


def find_loops(blocks: tuple[Block, ...]) -> tuple[Loop, ...]:
    """Return the natural loops, outer before inner; back edges to one header make one loop."""
    if not blocks:
        return ()
    order = _reverse_postorder(blocks)
    predecessors: list[list[int]] = [[] for _ in blocks]
    for block in order:
        for successor in blocks[block].successors:
            predecessors[successor].append(block)
    dominator = _dominators(order, predecessors)
    bodies: dict[int, set[int]] = {}
    for block in order:
        for successor in blocks[block].successors:
            dominating = block
            while dominating not in (successor, dominator[dominating]):
                dominating = dominator[dominating]
            if dominating != successor:
                continue
            body = bodies.setdefault(successor, {successor})  # the edge goes back to its header
            stack = [block]
            while stack:
                member = stack.pop()
                if member not in body:
                    body.add(member)
                    stack.extend(predecessors[member])
    loops: list[Loop] = []
    for header in sorted(bodies, key=lambda header: (-len(bodies[header]), header)):
        around = [index for index, loop in enumerate(loops) if header in loop.blocks]
        parent = around[-1] if around else -1  # the smallest enclosing loop came last
        depth = loops[parent].depth + 1 if around else 1
        inside = any(other != header and other in bodies[header] for other in bodies)
        loops.append(Loop(header, frozenset(bodies[header]), depth, parent, not inside))
    return tuple(loops)


def _reverse_postorder(blocks: tuple[Block, ...]) -> list[int]:
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        block, successors = stack[-1]
        following = next((successor for successor in successors if successor not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following].successors)))
    return order[::-1]


def _dominators(order: list[int], predecessors: list[list[int]]) -> dict[int, int]:
    """Return the immediate dominator of each reachable block; the entry's is itself."""
    position = {block: place for place, block in enumerate(order)}
    dominator = {order[0]: order[0]}

    def meet(first: int, second: int) -> int:
        while first != second:
            while position[first] > position[second]:
                first = dominator[first]
            while position[second] > position[first]:
                second = dominator[second]
        return first

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [each for each in predecessors[block] if each in dominator]
            new = known[0]
            for each in known[1:]:
                new = meet(each, new)
            if dominator.get(block) != new:
                dominator[block] = new
                changed = True
    return dominator
