"""Higher-order ops: their inner graphs are lowered in place, a loop's body once for each step.

A branch computes nothing but its results, so both are computed and the condition chooses: a
kernel's reads stay inside its buffers whatever the indices are.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Subgraph
from scheduler.ir.values import Value
from scheduler.limits import MAX_UNROLLED_NODES, MAX_UNROLLED_STEPS
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.joining import joined
from scheduler.lowering.pointwise import stored
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
        return b.inlined(true_fn if pred else false_fn, operands)
    yes, no = (b.inlined(branch, operands) for branch in (true_fn, false_fn))
    return tuple(_chosen(b, pred, one, other) for one, other in zip(yes, no, strict=True))


def _chosen(b: Builder, pred: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    agree = len(yes.size) == len(no.size) and all(map(b.agree, yes.size, no.size))
    if not agree or yes.dtype is not no.dtype:
        raise Unsupported("its branches make results of different shapes")
    test = trees.held(pred.at((_ZERO,) * pred.rank), DType.BOOL)

    def read(index: Index) -> Value:
        return trees.call("where", test, yes.at(index), no.at(index))

    return stored(b, Tensor(yes.size, yes.dtype, read))


def scan(
    b: Builder,
    combine_fn: Subgraph,
    init: tuple[Tensor, ...],
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    carried: tuple[Tensor, ...] = init
    made: list[tuple[Tensor, ...]] = []
    for step in range(_steps(combine_fn, xs)):
        given = (*carried, *(_slice(x, step) for x in xs), *additional_inputs)
        results = b.inlined(combine_fn, given)
        carried = _in_memory(b, results[: len(init)])
        made.append(_in_memory(b, results[len(init) :]))
    return (*carried, *_stacked(b, made))


def associative_scan(
    b: Builder,
    combine_fn: Subgraph,
    xs: tuple[Tensor, ...],
    additional_inputs: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    running = tuple(_slice(x, 0) for x in xs)
    made = [running]
    for step in range(1, _steps(combine_fn, xs)):
        given = (*running, *(_slice(x, step) for x in xs), *additional_inputs)
        running = _in_memory(b, b.inlined(combine_fn, given))
        made.append(running)
    return _stacked(b, made)


def mapped(
    b: Builder,
    f: Subgraph,
    xs: tuple[Tensor, ...],
    pos_args: tuple[Tensor | int, ...] = (),
) -> tuple[Tensor, ...]:
    made = [
        _in_memory(b, b.inlined(f, (*(_slice(x, step) for x in xs), *pos_args)))
        for step in range(_steps(f, xs))
    ]
    return _stacked(b, made)


def _steps(body: Subgraph, xs: Sequence[Tensor]) -> int:
    """How many times a body is lowered, where that is a fixed number and not too many."""
    if not xs or not xs[0].size or not xs[0].size[0].is_Integer:
        raise Unsupported("its number of steps is known only while the model runs")
    steps = int(xs[0].size[0])
    if not 0 < steps <= MAX_UNROLLED_STEPS or steps * len(body.nodes) > MAX_UNROLLED_NODES:
        raise Unsupported(
            f"{steps} steps of {len(body.nodes)} nodes; at most {MAX_UNROLLED_STEPS} steps and "
            f"{MAX_UNROLLED_NODES} nodes together become kernels"
        )
    return steps


def _slice(x: Tensor, step: int) -> Tensor:
    return x.view(x.size[1:], lambda index: (sympy.Integer(step), *index))


def _in_memory(b: Builder, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Each in memory: a step that reads the last one's trees twice would double them each time."""
    return tuple(b.realize(tensor) for tensor in tensors)


def _stacked(b: Builder, made: Sequence[Sequence[Tensor]]) -> tuple[Tensor, ...]:
    stacks = []
    for slices in zip(*made, strict=True):
        wide = [x.view((_ONE, *x.size), lambda index: index[1:]) for x in slices]
        stacks.append(stored(b, joined(wide, 0, slices[0].dtype)))
    return tuple(stacks)
