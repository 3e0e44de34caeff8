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
    call = extern = begun = 0
    inside: list[int] = []
    while True:
        while inside and loops[inside[-1]][1] == (call, extern):
            yield Step(StepKind.END, inside.pop())
        while begun < len(loops) and loops[begun][0] == (call, extern):
            inside.append(begun)
            yield Step(StepKind.BEGIN, begun)
            begun += 1
        if extern < len(externs) and externs[extern] <= call:
            yield Step(StepKind.EXTERN, extern)
            extern += 1
        elif call < calls:
            yield Step(StepKind.CALL, call)
            call += 1
        else:
            return


def loop_ends(steps: Sequence[Step]) -> dict[int, int]:
    """Return the position of each loop's end, by the position of its begin."""
    begins = {step.number: place for place, step in enumerate(steps) if step.kind is StepKind.BEGIN}
    return {
        begins[step.number]: place for place, step in enumerate(steps) if step.kind is StepKind.END
    }
