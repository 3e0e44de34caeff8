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
from scheduler.lowering.loop_builder import Loop, condition_buffer, row_major_copy
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
    outer_externs_inside, b.externs_inside = b.externs_inside, False
    try:
        true_results, false_results = (
            b.inline_subgraph(branch, operands) for branch in (true_fn, false_fn)
        )
    finally:
        b.externs_inside = outer_externs_inside
    condition = upcast(pred.at((_ZERO,) * pred.rank), DType.BOOL)
    results = []
    for true_result, false_result in zip(true_results, false_results, strict=True):
        same_rank = len(true_result.size) == len(false_result.size)
        has_same_shape = same_rank and all(map(b.may_be_equal, true_result.size, false_result.size))
        if not has_same_shape or true_result.dtype is not false_result.dtype:
            raise Unsupported("its branches return results of different shapes")

        def read(
            index: Index, true_result: Tensor = true_result, false_result: Tensor = false_result
        ) -> Value:
            return call("where", condition, true_result.at(index), false_result.at(index))

        results.append(materialize(b, Tensor(true_result.size, true_result.dtype, read)))
    return tuple(results)


def while_loop(
    b: Builder,
    cond_fn: Subgraph,
    body_fn: Subgraph,
    carried_inputs: tuple[Tensor | int, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    _reject_random_draws(cond_fn, body_fn)
    carried_tensors = [x for x in carried_inputs if isinstance(x, Tensor)]
    if len(carried_tensors) != len(carried_inputs):
        raise Unsupported("it carries a value that is not a tensor")
    carried_copies = tuple(row_major_copy(b, x) for x in carried_tensors)
    loop = Loop(
        b,
        carried_copies,
        condition=condition_buffer(
            b, b.inline_subgraph(cond_fn, (*carried_copies, *additional_inputs))
        ),
    )
    result = b.inline_subgraph(body_fn, (*loop.carried, *additional_inputs))
    next_values = _check_carried_values(b, loop, carried_tensors, result)
    condition = condition_buffer(b, b.inline_subgraph(cond_fn, (*next_values, *additional_inputs)))
    return loop.end(next_values, condition=condition).carried


def scan(
    b: Builder,
    combine_fn: Subgraph,
    init: tuple[Tensor, ...],
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    steps = _unroll_count(combine_fn, xs)
    if steps is None:
        loop = Loop(b, [row_major_copy(b, x) for x in init], xs, steps=xs[0].size[0])
        results = b.inline_subgraph(combine_fn, (*loop.carried, *loop.sliced, *additional_inputs))
        next_values = _check_carried_values(b, loop, init, results[: len(init)])
        loop_result = loop.end(next_values, [loop.copy_unshared(x) for x in results[len(init) :]])
        return (*loop_result.carried, *loop_result.stacked)
    carried: tuple[Tensor, ...] = init
    step_outputs: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        step_inputs = (*carried, *(_slice(x, step) for x in xs), *additional_inputs)
        results = b.inline_subgraph(combine_fn, step_inputs)
        carried = _in_memory(b, results[: len(init)])
        step_outputs.append(_in_memory(b, results[len(init) :]))
    return (*carried, *_stack(b, step_outputs))


def associative_scan(
    b: Builder,
    combine_fn: Subgraph,
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    steps = _unroll_count(combine_fn, xs)
    running = tuple(_slice(x, 0) for x in xs)
    if steps is None:
        loop = Loop(
            b, [row_major_copy(b, x) for x in running], xs, steps=xs[0].size[0] - 1, first=1
        )
        results = b.inline_subgraph(combine_fn, (*loop.carried, *loop.sliced, *additional_inputs))
        next_values = _check_carried_values(b, loop, running, results)
        loop_result = loop.end(next_values, [loop.copy_unshared(x) for x in next_values])
        firsts = [x.view((_ONE, *x.size), lambda index: index[1:]) for x in running]
        return tuple(
            materialize(b, concatenate([first, later], 0, first.dtype))
            for first, later in zip(firsts, loop_result.stacked, strict=True)
        )
    step_results = [running]
    for step in range(1, steps):
        step_inputs = (*running, *(_slice(x, step) for x in xs), *additional_inputs)
        running = _in_memory(b, b.inline_subgraph(combine_fn, step_inputs))
        step_results.append(running)
    return _stack(b, step_results)


def map_op(
    b: Builder, f: Subgraph, xs: tuple[Tensor, ...], pos_args: tuple[Tensor | int, ...] = ()
) -> tuple[Tensor, ...]:
    steps = _unroll_count(f, xs)
    if steps is None:
        loop = Loop(b, (), xs, steps=xs[0].size[0])
        results = b.inline_subgraph(f, (*loop.sliced, *pos_args))
        return loop.end((), [loop.copy_unshared(x) for x in results]).stacked
    step_results = [
        _in_memory(b, b.inline_subgraph(f, (*(_slice(x, step) for x in xs), *pos_args)))
        for step in range(steps)
    ]
    return _stack(b, step_results)


def _check_carried_values(
    b: Builder, loop: Loop, before: Sequence[Tensor], results: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The values that a body passes to the next step, with the shapes that it received."""
    if len(before) != len(results):
        raise Unsupported("its body returns another number of tensors than it takes")
    for old, new in zip(before, results, strict=True):
        has_same_shape = len(old.size) == len(new.size) and all(
            map(b.may_be_equal, old.size, new.size)
        )
        if not has_same_shape or old.dtype is not new.dtype:
            raise Unsupported("its body returns a tensor of another shape or type than it takes")
    shaped = (
        Tensor(old.size, new.dtype, new.at, new.buffer, new.nodes)
        for old, new in zip(before, results, strict=True)
    )
    return tuple(loop.copy_unshared(x) for x in shaped)


def _reject_random_draws(*subgraphs: Subgraph) -> None:
    if any(draws_random(node) for subgraph in subgraphs for node in subgraph.nodes):
        raise Unsupported("its body draws random numbers, which differ in each step")


def _unroll_count(body: Subgraph, xs: Sequence[Tensor]) -> int | None:
    """The number of steps if the loop is unrolled; None if it stays a loop."""
    _reject_random_draws(body)
    if not xs or not xs[0].size:
        raise Unsupported("it scans no tensors")
    if any(not x.size or not x.size[0] == xs[0].size[0] for x in xs):
        raise Unsupported("it scans tensors of different lengths")
    if not xs[0].size[0].is_Integer:
        return None
    steps = int(xs[0].size[0])
    if not steps:
        raise Unsupported("it scans tensors of length 0")
    is_small = steps <= MAX_UNROLLED_STEPS and steps * len(body.nodes) <= MAX_UNROLLED_NODES
    return steps if is_small else None


def _slice(x: Tensor, step: int) -> Tensor:
    return x.view(x.size[1:], lambda index: (sympy.Integer(step), *index))


def _in_memory(b: Builder, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Each tensor in memory. Otherwise a step that reads the previous step's trees twice would
    double them in each step."""
    return tuple(b.realize(tensor) for tensor in tensors)


def _stack(b: Builder, step_results: Sequence[Sequence[Tensor]]) -> tuple[Tensor, ...]:
    stacks = []
    for slices in zip(*step_results, strict=True):
        rows = [x.view((_ONE, *x.size), lambda index: index[1:]) for x in slices]
        stacks.append(materialize(b, concatenate(rows, 0, slices[0].dtype)))
    return tuple(stacks)
