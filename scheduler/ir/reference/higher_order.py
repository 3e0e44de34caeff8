"""Reference of higher-order ops: branches, and loops over subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scheduler.errors import UserError
from scheduler.ir.reference.rule import RUN, Args, Array, EndlessLoopError, UnsupportedUseError
from scheduler.limits import MAX_ITERATIONS


def cond(a: Args) -> tuple[Any, ...]:
    """Run the branch that ``pred`` (one element) selects, and not the other."""
    result: tuple[Any, ...] = a[RUN](
        a["true_fn" if np.all(a["pred"]) else "false_fn"], a["operands"]
    )
    return result


def while_loop(a: Args) -> tuple[Any, ...]:
    """Apply ``body_fn`` to the carried values while ``cond_fn`` returns True for them."""
    carried, constants = tuple(a["carried_inputs"]), tuple(a["additional_inputs"])
    for _ in range(MAX_ITERATIONS):
        (continues,) = a[RUN](a["cond_fn"], (*carried, *constants))
        if not np.all(continues):
            return carried
        carried = a[RUN](a["body_fn"], (*carried, *constants))
    raise EndlessLoopError(f"a while_loop exceeds the limit of {MAX_ITERATIONS} steps")


def scan(a: Args) -> tuple[Any, ...]:
    """Apply ``combine_fn`` to the carried values and the next slice of each of ``xs`` (along
    dimension 0). Returns the final carried values, then the other results, stacked."""
    carried, xs = tuple(a["init"]), tuple(a["xs"])
    steps = _slice_count(xs)
    result: list[tuple[Any, ...]] = []
    for step in range(steps):
        operands = (*carried, *(x[step] for x in xs), *a["additional_inputs"])
        results = a[RUN](a["combine_fn"], operands)
        carried = results[: len(carried)]
        result.append(results[len(carried) :])
    return (*carried, *_stack(result))


def associative_scan(a: Args) -> tuple[Any, ...]:
    """Scan the slices along dimension 0 with ``combine_fn``."""
    xs = tuple(a["xs"])
    running = tuple(x[0] for x in xs) if _slice_count(xs) else ()
    result = [running]
    for step in range(1, _slice_count(xs)):
        operands = (*running, *(x[step] for x in xs), *a["additional_inputs"])
        running = a[RUN](a["combine_fn"], operands)
        result.append(running)
    return _stack(result)


def map_op(a: Args) -> tuple[Any, ...]:
    """Apply ``f`` to each slice of ``xs`` along dimension 0, and stack the results."""
    xs = tuple(a["xs"])
    result = [
        a[RUN](a["f"], (*(x[step] for x in xs), *a["pos_args"])) for step in range(_slice_count(xs))
    ]
    return _stack(result)


def _slice_count(xs: Sequence[Array]) -> int:
    """Return the number of slices; without slices the results' shapes are unknown."""
    steps = len(xs[0]) if xs else 0
    if not steps:
        raise UnsupportedUseError("a loop over no slices is not supported")
    if steps > MAX_ITERATIONS:
        raise UserError(f"a loop over {steps} slices; the limit is {MAX_ITERATIONS}")
    return steps


def _stack(result: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(np.stack(parts) for parts in zip(*result, strict=True))
