"""Maxima and sums of exponentials in one loop, for rows that are too long for registers.

A softmax is lowered as two reductions, of which the sum needs the maximum: two loops over elements
that no register holds. One pass gives both: the sum is over distances from the maximum so far, and
is rescaled whenever a greater element appears (``kiln/exponentials.h``; Milakov & Gimelshein,
arXiv:1805.02867). The sum about the point that its tree names follows from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from scheduler.codegen.cpp.values import convert
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.reduction.stages import Stage, SumOfExponentials, fuse_stages
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Call, Load

_TYPES = (DType.F32, DType.F64)
# For a thread that reads single elements: as many as a pack has. For each of its columns.
_STEPS, _COLUMN_STEPS = 8, 4


def fuse_exponentials(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, with each loop that only sums exponentials merged into the loop before it,
    which finds the maximum of the same elements."""
    return fuse_stages(stages, _fuse_pair)


def _fuse_pair(before: Stage, stage: Stage) -> Stage | None:
    if len(stage.loop) != 1 or before.points:
        return None
    (statement,) = stage.loop
    parts = _shifted_power(statement)
    if parts is None or statement.accumulate not in _TYPES:
        return None
    power, distance, point = parts
    element = distance.args[0]
    tops = [s for s in before.loop if s.kind is ReductionKind.MAX and s.value == element]
    rows = {s.store.buffer for s in (*before.reductions, *before.after)}
    alike = [
        top for top in tops if top.accumulate.compute_dtype is statement.accumulate.compute_dtype
    ]
    if not alike or point.buffer not in rows:
        return None
    top = alike[0]
    summed = replace(statement, value=element)
    return Stage(
        (*(s for s in before.loop if s is not top), summed),
        (top, *before.after, summed, *stage.after),
        {summed.name: point},
        {summed.name: SumOfExponentials(top.name, power)},
    )


def _shifted_power(statement: Statement) -> tuple[Call, Call, Load] | None:
    """Return the summed exponential, the distance in it, and the point that it is measured from."""
    power = statement.value
    if statement.kind is not ReductionKind.SUM or not isinstance(power, Call) or power.op != "exp":
        return None
    (distance,) = power.args
    if not isinstance(distance, Call) or distance.op != "sub":
        return None
    point = distance.args[1]
    return (power, distance, point) if isinstance(point, Load) else None


def pair_op(statement: Statement, *, fast: bool) -> tuple[str, str]:
    """Return the operation that combines the pairs of two sets of elements, and its type, in
    C++."""
    held = statement.accumulate.compute_dtype.cpp + (", true" if fast else "")
    return f"kiln::JoinExponentials<{held}>", f"kiln::Exponentials<{held}>"


def exponential_pairs(stage: Stage, accumulators: Mapping[str, str]) -> dict[str, Statement]:
    """Return the stage's sums of exponentials by the names of their ``accumulators``."""
    return {accumulators[s.name]: s for s in stage.reductions if s.name in stage.exponentials}


def add_element(statement: Statement, name: str, text: str, at: str, place: str) -> str:
    """Return the statement that adds the element ``text`` to a pair, at column ``at`` if it has
    several. With ``place`` the element is stored there, to be added together with others."""
    element = convert(text, statement.value.dtype, statement.accumulate.compute_dtype)
    return f"{name}_elements{at}{place} = {element};" if place else f"{name}{at}.add({element});"


@contextmanager
def batched_elements(
    lines: Lines, pairs: Mapping[str, Statement], count: str, *, columns: bool = False
) -> Iterator[None]:
    """Collect ``count`` elements in the lines inside, then add them to the ``pairs``, by name."""
    for name, statement in pairs.items():
        places = f"[kColumns][{count}]" if columns else f"[{count}]"
        held = statement.accumulate.compute_dtype.cpp
        lines.add(f"{held} {name}_elements{places};", statement.store.nodes)
    yield
    for name, statement in pairs.items():
        text = f"{name}.add({name}_elements);"
        if columns:
            lines.add("#pragma unroll", ())
            text = f"for (int j = 0; j < kColumns; ++j) {name}[j].add({name}_elements[j]);"
        lines.add(text, statement.store.nodes)


@contextmanager
def batched_steps(
    lines: Lines, pairs: Mapping[str, Statement], begin: str, first: str, *, columns: bool = False
) -> Iterator[None]:
    """Run the lines inside for one step, ``rindex``, of several that the ``pairs`` add together;
    ``begin``, defined here, is the first of the remaining steps that are too few."""
    steps = _COLUMN_STEPS if columns else _STEPS
    lines.add(f"index_t {begin} = {first};", ())
    more = f"rend - {begin} > {steps - 1} * kLanes"
    with (
        lines.block(f"for (; {more}; {begin} += {steps} * kLanes)"),
        batched_elements(lines, pairs, str(steps), columns=columns),
    ):
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int k = 0; k < {steps}; ++k)"):
            lines.add(f"const index_t rindex = {begin} + k * kLanes;", ())
            yield
