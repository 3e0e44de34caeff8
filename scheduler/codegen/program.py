"""The order of a bundle's calls and host operations, and where loops begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from scheduler.errors import UserError

#: The number of calls, and of externs, before a position in the order.
Position: TypeAlias = tuple[int, int]


class StepKind(StrEnum):
    """The kind of a step."""

    CALL = "call"
    EXTERN = "extern"
    BEGIN = "begin"
    END = "end"


class Step(NamedTuple):
    """``number`` counts calls, externs or loops, each separately."""

    kind: StepKind
    number: int


def build_program(
    calls: int, externs: Sequence[int], loops: Sequence[tuple[Position, Position]]
) -> tuple[Step, ...]:
    """Return all steps in order. ``externs`` gives for each extern, in order, the number of calls
    before it; ``loops`` where each begins and ends, in the order in which they begin.

    Raises ``UserError`` if loops are neither nested nor consecutive.
    """
    steps = tuple(_steps(calls, externs, loops))
    if sum(step.kind is StepKind.END for step in steps) != len(loops):
        raise UserError("loops overlap: they must be nested or consecutive")
    return steps


def _steps(
    calls: int, externs: Sequence[int], loops: Sequence[tuple[Position, Position]]
) -> Iterator[Step]:
    next_call = next_extern = next_loop = 0
    open_loops: list[int] = []
    while True:
        while open_loops and loops[open_loops[-1]][1] == (next_call, next_extern):
            yield Step(StepKind.END, open_loops.pop())
        while next_loop < len(loops) and loops[next_loop][0] == (next_call, next_extern):
            open_loops.append(next_loop)
            yield Step(StepKind.BEGIN, next_loop)
            next_loop += 1
        if next_extern < len(externs) and externs[next_extern] <= next_call:
            yield Step(StepKind.EXTERN, next_extern)
            next_extern += 1
        elif next_call < calls:
            yield Step(StepKind.CALL, next_call)
            next_call += 1
        else:
            return


def loop_ends(steps: Sequence[Step]) -> dict[int, int]:
    """Return the position of each loop's end, by the position of its begin."""
    begins = {step.number: i for i, step in enumerate(steps) if step.kind is StepKind.BEGIN}
    return {begins[step.number]: i for i, step in enumerate(steps) if step.kind is StepKind.END}
