"""The stages of a reduction group: the statements that can share one loop over the inner axes.

Two loops become one where the second only measures distances from a result of the first:

- A softmax is lowered as a maximum and a sum of exponentials of the distances from it. One pass
  gives both: the sum is over distances from the maximum so far, and is rescaled whenever a greater
  element appears (``kiln/exponentials.h``; Milakov & Gimelshein, arXiv:1805.02867).
- A variance is lowered as a sum and a sum of squared distances from the mean. One pass gives count,
  mean and squares about it (``kiln/moments.h``).

The sum about the point that its tree names follows from either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.codegen.loops.statements import Statement
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Accumulator, Call, Load, walk

_FUSED_TYPES = (DType.F32, DType.F64)


@dataclass(frozen=True)
class SumOfExponentials:
    """For a reduction that finds the maximum as well: the name of the reduction with that result
    (``top``), and one of the exponentials (``power``)."""

    top: str
    power: Call


@dataclass(frozen=True)
class Stage:
    """``loop`` runs at each step of the inner axes; ``after`` once, when its sums are complete.

    ``points`` maps reductions, by name, to the point about which the squared distances of their
    values are summed or, for those in ``exponentials``, the exponentials of the distances. These
    reductions are in ``after`` too, after the point is computed. The reduction whose result such a
    sum also gives is only there.
    """

    loop: tuple[Statement, ...]
    after: tuple[Statement, ...]
    points: Mapping[str, Load] = field(default_factory=dict)
    exponentials: Mapping[str, SumOfExponentials] = field(default_factory=dict)

    @property
    def reductions(self) -> tuple[Statement, ...]:
        """Return the statements whose accumulators are complete after the loop."""
        return tuple(s for s in self.loop if s.kind is not None)

    @property
    def has_moments(self) -> bool:
        """Whether squares of distances are summed."""
        return any(name not in self.exponentials for name in self.points)


def find_stages(statements: Sequence[Statement]) -> tuple[Stage, ...]:
    """Return the statements in as few loops as their dependencies allow, in order."""
    stages: list[Stage] = []
    loop: list[Statement] = []
    after: list[Statement] = []
    complete_later: set[str] = set()
    for statement in statements:
        if not statement.inner:
            after.append(statement)
            complete_later.add(statement.store.buffer)
            continue
        if any(
            (isinstance(part, Accumulator) and part.name in complete_later)
            or (isinstance(part, Load) and part.buffer in complete_later)
            for part in walk(statement.value)
        ):
            stages.append(Stage(tuple(loop), tuple(after)))
            loop, after, complete_later = [], [], set()
        loop.append(statement)
        if statement.kind is not None:
            complete_later |= {statement.name, statement.store.buffer}
    stages.append(Stage(tuple(loop), tuple(after)))
    return tuple(stages)


def fuse_moments(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, with each loop that only sums squared distances merged into the loop
    before it, which sums the same elements."""
    return _fuse(stages, exponentials=False)


def fuse_exponentials(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, with each loop that only sums exponentials merged into the loop before it,
    which finds the maximum of the same elements."""
    return _fuse(stages, exponentials=True)


def _fuse(stages: Sequence[Stage], *, exponentials: bool) -> tuple[Stage, ...]:
    fused: list[Stage] = []
    for stage in stages:
        merged = _merge(fused[-1], stage, exponentials=exponentials) if fused else None
        if merged is None:
            fused.append(stage)
        else:
            fused[-1] = merged
    return tuple(fused)


def _merge(before: Stage, stage: Stage, *, exponentials: bool) -> Stage | None:
    """Return both stages as one, or None if the second needs a separate loop."""
    if len(stage.loop) != 1 or before.points:
        return None
    (statement,) = stage.loop
    term, accumulate = statement.value, statement.accumulate
    if statement.kind is not ReductionKind.SUM or accumulate not in _FUSED_TYPES:
        return None
    if not isinstance(term, Call) or term.op != ("exp" if exponentials else "mul"):
        return None
    distance = term.args[0]
    if not isinstance(distance, Call) or distance.op != "sub" or distance != term.args[-1]:
        return None  # a product of two different factors, or not of distances
    element, point = distance.args
    kind = ReductionKind.MAX if exponentials else ReductionKind.SUM
    earlier = [s for s in before.loop if s.kind is kind and s.value == element]
    if exponentials:
        earlier = [s for s in earlier if s.accumulate.compute_dtype is accumulate.compute_dtype]
    row_buffers = {s.store.buffer for s in (*before.reductions, *before.after)}
    if not earlier or not isinstance(point, Load) or point.buffer not in row_buffers:
        return None
    sum_statement = replace(statement, value=element)
    points, after = {sum_statement.name: point}, (*before.after, sum_statement, *stage.after)
    if not exponentials:
        return Stage((*before.loop, sum_statement), after, points)
    maximum = earlier[0]
    loop = (*(s for s in before.loop if s is not maximum), sum_statement)
    sums = {sum_statement.name: SumOfExponentials(maximum.name, term)}
    return Stage(loop, (maximum, *after), points, sums)
