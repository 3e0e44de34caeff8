"""Random but realistic inputs of a graph: no overflow, no index outside its table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from scheduler.ir import numerics
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.graph import Graph, GraphInput, InputKind
from scheduler.ir.index.functions import evaluate
from scheduler.ir.reference.constraints import Constraint
from scheduler.ir.reference.rule import Array, compute_dtype
from scheduler.reference.constraints import input_constraints

_BIAS = 0.1  # standard deviation of biases, and of gains around 1
_DIVISORS = 5  # integer divisors are below this
_TRUE = 0.75  # share of True in masks


def random_inputs(
    graph: Graph,
    bindings: Mapping[str, int],
    rng: np.random.Generator,
    only: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return a value for every input (or those in ``only``) by name, as ``run`` takes them.

    Floats are float64 arrays whose values the input's own type represents exactly: weights about
    1 / sqrt(fan-in), factors of normalisations near 1, variances positive, a user's input normal.
    Integers that index a table lie within it; others are 0 or 1. The first column of a mask is
    True, so that no row is fully masked. Symbolic integers take their values from the bindings.

    The values depend only on the graph, the bindings and the generator's state; an input's values
    do not depend on ``only``.
    """
    roles = input_constraints(graph, bindings)
    seeds = rng.integers(0, 2**63, size=len(graph.inputs))
    concrete = dict(bindings)
    values: dict[str, Any] = {}
    for value, seed in zip(graph.inputs, seeds.tolist(), strict=True):
        if only is not None and value.name not in only:
            continue
        if value.name in graph.sym_ints:
            values[value.name] = evaluate(graph.sym_ints[value.name], concrete)
            continue
        meta = graph.tensors[value.name]
        shape = tuple(evaluate(size, concrete) for size in meta.size)
        role = roles.get(value.name, Constraint())
        source = np.random.default_rng(seed)
        if meta.dtype is DType.BOOL:
            values[value.name] = _mask(source, shape)
        elif meta.dtype.is_complex:
            parts = (_floats(source, shape, value, meta.dtype.real, role) for _ in range(2))
            values[value.name] = round_to_dtype(numerics.make_complex(*parts), meta.dtype)
        elif meta.dtype.is_float:
            values[value.name] = round_to_dtype(
                _floats(source, shape, value, meta.dtype, role), meta.dtype
            )
        else:
            low, high = 0, role.below
            if role.divides:
                low, high = 1, max(2, role.below or _DIVISORS)
            integers = (
                _mask(source, shape) if high is None else source.integers(low, max(1, high), shape)
            )
            values[value.name] = np.asarray(integers).astype(compute_dtype(meta.dtype))
    return values


def _mask(source: np.random.Generator, shape: tuple[int, ...]) -> Array:
    mask = source.random(shape) < _TRUE
    if shape:
        mask[..., :1] = True
    return np.asarray(mask)


def _floats(
    source: np.random.Generator,
    shape: tuple[int, ...],
    value: GraphInput,
    dtype: DType,
    role: Constraint,
) -> Array:
    if role.positive or (value.kind is InputKind.BUFFER and not role.fan_in and not role.gain):
        return np.asarray(source.uniform(0.1, 1.0, size=shape))
    # float32 is sufficient for narrower types, and twice as fast to draw.
    draw_dtype: Any = np.float64 if dtype is DType.F64 else np.float32
    normal = np.asarray(source.standard_normal(shape, dtype=draw_dtype))
    if value.kind is InputKind.USER:
        return normal
    if role.gain:
        return np.asarray(1 + _BIAS * normal)
    if role.fan_in:
        normal *= draw_dtype(1 / math.sqrt(role.fan_in))  # in place: weights may take GiB
        return normal
    return normal if len(shape) > 1 else normal * draw_dtype(_BIAS)
