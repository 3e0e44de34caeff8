"""The stages of a reduction group: the statements that can share one loop over the inner axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.codegen.cpp.values import convert
from scheduler.codegen.loops.statements import Statement
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Accumulator, Call, Load, Value, walk


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
    values are summed (``moments.py``) or, for those in ``exponentials``, the exponentials
    of the distances (``online_softmax.py``). These reductions are in ``after`` too, after the point
    is computed. The reduction whose result such a sum also gives is only there.
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


def stages(statements: Sequence[Statement]) -> tuple[Stage, ...]:
    """Return the statements in as few loops as their dependencies allow, in order."""
    found: list[Stage] = []
    loop: list[Statement] = []
    after: list[Statement] = []
    complete_later: set[str] = set()
    for statement in statements:
        if not statement.inner:
            after.append(statement)
            complete_later.add(statement.store.buffer)
            continue
        if _needs(statement.value, complete_later):
            found.append(Stage(tuple(loop), tuple(after)))
            loop, after, complete_later = [], [], set()
        loop.append(statement)
        if statement.kind is not None:
            complete_later |= {statement.name, statement.store.buffer}
    found.append(Stage(tuple(loop), tuple(after)))
    return tuple(found)


def _needs(value: Value, names: set[str]) -> bool:
    return any(
        (isinstance(part, Accumulator) and part.name in names)
        or (isinstance(part, Load) and part.buffer in names)
        for part in walk(value)
    )


_OPERATIONS = {
    ReductionKind.SUM: "kiln::Sum",
    ReductionKind.PROD: "kiln::Product",
    ReductionKind.MAX: "kiln::Max",
    ReductionKind.MIN: "kiln::Min",
    ReductionKind.ANY: "kiln::Any",
    ReductionKind.ALL: "kiln::All",
    ReductionKind.ARGMAX: "kiln::ArgMax",
    ReductionKind.ARGMIN: "kiln::ArgMin",
    ReductionKind.LOGSUMEXP: "kiln::LogSumExp",
}


def finds_index(kind: ReductionKind | None) -> bool:
    """Whether a reduction gives an index rather than a value."""
    return kind in (ReductionKind.ARGMAX, ReductionKind.ARGMIN)


def combine(statement: Statement) -> tuple[str, str]:
    """Return the operation of a reduction or scan, and the type that it combines, in C++; indices
    are as wide as the kernel's."""
    assert statement.kind is not None
    if finds_index(statement.kind):
        held = f"{statement.value.dtype.compute_dtype.cpp}, index_t"
        return f"{_OPERATIONS[statement.kind]}<{held}>", f"kiln::Found<{held}>"
    held = statement.accumulate.compute_dtype.cpp
    return f"{_OPERATIONS[statement.kind]}<{held}>", held


def accumulate(statement: Statement, name: str, text: str, *, packed: bool) -> str:
    """Return the statement that adds the element ``text`` to the accumulator ``name`` at the step
    ``rindex``, or at element ``j`` of a pack that begins there."""
    operation, held = combine(statement)
    if finds_index(statement.kind):
        position = "rindex + j" if packed else "rindex"
        return f"{name} = {operation}::next({name}, {held}{{{text}, {position}}});"
    element = convert(text, statement.value.dtype, statement.accumulate.compute_dtype)
    return f"{name} = {operation}()({name}, {element});"


def accumulate_unordered(statement: Statement, name: str, text: str) -> str:
    """Return the statement that adds the element ``text`` to the accumulator at the step
    ``rindex``, which may come before steps that were already added."""
    operation, held = combine(statement)
    if finds_index(statement.kind):
        return f"{name} = {operation}()({name}, {held}{{{text}, rindex}});"
    return accumulate(statement, name, text, packed=False)


def init(statement: Statement, name: str, first: str, end: str) -> str:
    """Return the statement after a loop from ``first`` to ``end`` in which ``accumulate`` found an
    index."""
    operation, _ = combine(statement)
    return f"{name} = {operation}::begun({name}, {first}, {first} < {end});"


def fuse_stages(
    stages: Sequence[Stage], together: Callable[[Stage, Stage], Stage | None]
) -> tuple[Stage, ...]:
    """Return the stages, each merged with the stage before it if ``together`` returns a merged
    one."""
    found: list[Stage] = []
    for stage in stages:
        both = together(found[-1], stage) if found else None
        if both is None:
            found.append(stage)
        else:
            found[-1] = both
    return tuple(found)
