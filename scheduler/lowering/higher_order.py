"""Higher-order ops: their inner graphs are lowered in place.

A loop with few steps is unrolled: its body is lowered once per step. The body of any other loop is
lowered once, between the loop marks (``loop_builder.py``). The condition of a while_loop is
computed before the loop and at the end of each step, where it fuses with the body's results.

A branch only computes its results, so both branches are computed and the condition selects: a
kernel's reads stay inside its buffers whatever the indices are. An extern may fail, so a cond whose
branch contains an op without a kernel is left to the reference; in a loop body such an op runs by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Subgraph
from scheduler.ir.random import draws_random
from scheduler.ir.values import Value, call, upcast
from scheduler.limits import MAX_UNROLLED_NODES, MAX_UNROLLED_STEPS
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import concatenate
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.loop_builder import Loop, condition_buffer, copy_rows
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.tensor import Index, Tensor

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


def cond(
    b: Builder,
    pred: Tensor | bool,
    true_fn: Subgraph,
    false_fn: Subgraph,
    operands: tuple[Tensor | int, ...],
) -> tuple[Tensor, ...]:
    if not isinstance(pred, Tensor):
        return b.inline_subgraph(true_fn if pred else false_fn, operands)
    outside, b.externs_inside = b.externs_inside, False
    try:
        yes, no = (b.inline_subgraph(branch, operands) for branch in (true_fn, false_fn))
    finally:
        b.externs_inside = outside
    test = upcast(pred.at((_ZERO,) * pred.rank), DType.BOOL)
    results = []
    for one, other in zip(yes, no, strict=True):
        same_rank = len(one.size) == len(other.size)
        agree = same_rank and all(map(b.may_be_equal, one.size, other.size))
        if not agree or one.dtype is not other.dtype:
            raise Unsupported("its branches return results of different shapes")

        def read(index: Index, one: Tensor = one, other: Tensor = other) -> Value:
            return call("where", test, one.at(index), other.at(index))

        results.append(materialize(b, Tensor(one.size, one.dtype, read)))
    return tuple(results)


def while_loop(
    b: Builder,
    cond_fn: Subgraph,
    body_fn: Subgraph,
    carried_inputs: tuple[Tensor | int, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    _check_draws(cond_fn, body_fn)
    given = [x for x in carried_inputs if isinstance(x, Tensor)]
    if len(given) != len(carried_inputs):
        raise Unsupported("it carries a value that is not a tensor")
    more = additional_inputs
    init = tuple(copy_rows(b, x) for x in given)
    loop = Loop(b, init, condition=condition_buffer(b, b.inline_subgraph(cond_fn, (*init, *more))))
    result = b.inline_subgraph(body_fn, (*loop.carried, *more))
    handed = _carried_values(b, loop, given, result)
    again = condition_buffer(b, b.inline_subgraph(cond_fn, (*handed, *more)))
    return loop.end(handed, again=again).carried


def scan(
    b: Builder,
    combine_fn: Subgraph,
    init: tuple[Tensor, ...],
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    steps = _unroll_count(combine_fn, xs)
    if steps is None:
        loop = Loop(b, [copy_rows(b, x) for x in init], xs, steps=xs[0].size[0])
        results = b.inline_subgraph(combine_fn, (*loop.carried, *loop.sliced, *additional_inputs))
        handed = _carried_values(b, loop, init, results[: len(init)])
        left = loop.end(handed, [loop.copy_unshared(x) for x in results[len(init) :]])
        return (*left.carried, *left.stacked)
    carried: tuple[Tensor, ...] = init
    made: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        given = (*carried, *(_slice(x, step) for x in xs), *additional_inputs)
        results = b.inline_subgraph(combine_fn, given)
        carried = _in_memory(b, results[: len(init)])
        made.append(_in_memory(b, results[len(init) :]))
    return (*carried, *_stack(b, made))


def associative_scan(
    b: Builder,
    combine_fn: Subgraph,
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    steps = _unroll_count(combine_fn, xs)
    running = tuple(_slice(x, 0) for x in xs)
    if steps is None:
        loop = Loop(b, [copy_rows(b, x) for x in running], xs, steps=xs[0].size[0] - 1, first=1)
        results = b.inline_subgraph(combine_fn, (*loop.carried, *loop.sliced, *additional_inputs))
        handed = _carried_values(b, loop, running, results)
        left = loop.end(handed, [loop.copy_unshared(x) for x in handed])
        firsts = [x.view((_ONE, *x.size), lambda index: index[1:]) for x in running]
        return tuple(
            materialize(b, concatenate([one, rest], 0, one.dtype))
            for one, rest in zip(firsts, left.stacked, strict=True)
        )
    made = [running]
    for step in range(1, steps):
        given = (*running, *(_slice(x, step) for x in xs), *additional_inputs)
        running = _in_memory(b, b.inline_subgraph(combine_fn, given))
        made.append(running)
    return _stack(b, made)


def map_op(
    b: Builder, f: Subgraph, xs: tuple[Tensor, ...], pos_args: tuple[Tensor | int, ...] = ()
) -> tuple[Tensor, ...]:
    steps = _unroll_count(f, xs)
    if steps is None:
        loop = Loop(b, (), xs, steps=xs[0].size[0])
        results = b.inline_subgraph(f, (*loop.sliced, *pos_args))
        return loop.end((), [loop.copy_unshared(x) for x in results]).stacked
    made = [
        _in_memory(b, b.inline_subgraph(f, (*(_slice(x, step) for x in xs), *pos_args)))
        for step in range(steps)
    ]
    return _stack(b, made)


def _carried_values(
    b: Builder, loop: Loop, before: Sequence[Tensor], made: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The values that a body passes to the next step, with the shapes that it received."""
    if len(before) != len(made):
        raise Unsupported("its body returns another number of tensors than it takes")
    for old, new in zip(before, made, strict=True):
        agree = len(old.size) == len(new.size) and all(map(b.may_be_equal, old.size, new.size))
        if not agree or old.dtype is not new.dtype:
            raise Unsupported("its body returns a tensor of another shape or type than it takes")
    shaped = (
        Tensor(old.size, new.dtype, new.at, new.buffer, new.nodes)
        for old, new in zip(before, made, strict=True)
    )
    return tuple(loop.copy_unshared(x) for x in shaped)


def _check_draws(*parts: Subgraph) -> None:
    if any(draws_random(node) for part in parts for node in part.nodes):
        raise Unsupported("its body draws random numbers, which differ in each step")


def _unroll_count(body: Subgraph, xs: Sequence[Tensor]) -> int | None:
    """The number of steps if the loop is unrolled; None if it stays a loop."""
    _check_draws(body)
    if not xs or not xs[0].size:
        raise Unsupported("it scans no tensors")
    if any(not x.size or not x.size[0] == xs[0].size[0] for x in xs):
        raise Unsupported("it scans tensors of different lengths")
    if not xs[0].size[0].is_Integer:
        return None
    steps = int(xs[0].size[0])
    if not steps:
        raise Unsupported("it scans tensors of length 0")
    few = steps <= MAX_UNROLLED_STEPS and steps * len(body.nodes) <= MAX_UNROLLED_NODES
    return steps if few else None


def _slice(x: Tensor, step: int) -> Tensor:
    return x.view(x.size[1:], lambda index: (sympy.Integer(step), *index))


def _in_memory(b: Builder, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Each tensor in memory. Otherwise a step that reads the previous step's trees twice would
    double them in each step."""
    return tuple(b.realize(tensor) for tensor in tensors)


def _stack(b: Builder, made: Sequence[Sequence[Tensor]]) -> tuple[Tensor, ...]:
    stacks = []
    for slices in zip(*made, strict=True):
        wide = [x.view((_ONE, *x.size), lambda index: index[1:]) for x in slices]
        stacks.append(materialize(b, concatenate(wide, 0, slices[0].dtype)))
    return tuple(stacks)
