"""Builds a case from a scheduler node: random inputs at concrete sizes and expected outputs.

Each kernel is checked separately: its inputs are random values that its buffers' types represent
exactly, and its operations, interpreted in float64, define the expected outputs. Whether the
operations match the model is checked by running the whole graph against the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.rounding_sensitivity import rounding_bounds
from scheduler.benchmark.tolerance import (
    Tolerance,
    kernel_tolerance,
    rounding_tolerance,
    stored_tolerance,
)
from scheduler.errors import UserError
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.ir.operations import GroupKind, Lowered, Sort
from scheduler.ir.rounding_noise import RoundingNoise
from scheduler.ir.storage import Array, BoundBuffer, bind_buffer, from_storage_native
from scheduler.ir.values import Cast, Load, Value, walk
from scheduler.lowering.interpret import interpret, sorted_keys

# Integers that are not indices are below this, so that sums and products stay exact.
_INTEGER_END = 8
_CHUNK_ELEMENTS = 2**22  # elements generated at a time
_MAX_ERROR = 2.0**127  # largest finite error


def make_case(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    rng: np.random.Generator,
    *,
    with_roundings: bool = False,
) -> Case:
    """Build the case of one scheduler node, with an error bound for each element: running error
    analysis (``scheduler/lowering/running_error.py``), and the rounding to the output's type.

    With ``with_roundings`` the bounds include the effect of a kernel's own roundings. It runs the
    interpreter several times, so it is used only if a kernel fails without it.

    If normal inputs leave the domain of a function (the root of a negative variance) for most
    of an output, positive inputs are drawn instead, so that there is something to compare.

    Raises ``UserError`` if the given data-dependent sizes are inconsistent, so that the node would
    read outside its buffers.
    """
    try:
        return _build_case(node, lowered, bindings, rng, with_roundings)
    except IndexError as error:
        data_dependent = {name: value for name, value in bindings.items() if is_unbacked(name)}
        if not data_dependent:
            raise
        sizes = format_bindings(data_dependent)
        raise UserError(f"{sizes}: inconsistent data-dependent sizes") from error


def _build_case(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    rng: np.random.Generator,
    with_roundings: bool,
) -> Case:
    buffers = {
        name: bind_buffer(lowered.buffers[name], bindings) for name in (*node.reads, *node.writes)
    }
    dtypes = {name: buffers[name].dtype for name in node.writes}
    limits = index_limits(node, bindings)
    # Running error analysis does not cover complex numbers.
    parts = (part for value in value_trees(node) for part in walk(value))
    is_analysed = not any(part.dtype.is_complex for part in parts)
    for positive in (False, True):
        inputs = {
            name: _draw_storage(buffers[name], limits.get(name), rng, positive)
            for name in node.reads
        }
        errors: dict[str, Array] | None = {} if is_analysed else None
        expected = _expected_outputs(node, lowered, bindings, inputs, buffers, errors=errors)
        floats = [a for a in expected.values() if np.issubdtype(a.dtype, np.inexact) and a.size]
        if not any(np.count_nonzero(np.isnan(a)) * 2 > a.size for a in floats):
            break
    carried: dict[str, Array] = {}
    if errors is None:
        tolerances = {name: node_tolerance(node, dtypes[name], bindings) for name in node.writes}
    else:
        carried = {name: _add_store_rounding(errors[name], dtypes[name]) for name in node.writes}
        tolerances = {name: rounding_tolerance(dtypes[name]) for name in node.writes}
    if with_roundings:

        def run() -> Mapping[str, Array]:
            return _expected_outputs(
                node, lowered, bindings, inputs, buffers, roundings=RoundingNoise(rng)
            )

        for name, bound in rounding_bounds(run, expected, dtypes).items():
            carried[name] = bound + carried.get(name, np.float32(0))
    sort = node.members[0]
    keys: dict[str, Array] = {}
    along: dict[str, int] = {}
    # Keys that are read unchanged, or are not floats, have a unique order.
    if isinstance(sort, Sort) and not isinstance(sort.key, Load) and sort.key.dtype.is_float:
        values = _input_values(inputs, buffers)
        for store in sort.stores:
            name = store.buffer
            if not buffers[name].dtype.is_float:
                keys[name] = sorted_keys(sort, store, values, lowered, bindings)
                along[name] = store.index.index(sort.place.var)
                tolerances[name] = node_tolerance(node, sort.key.dtype, bindings)
    return Case(buffers, inputs, expected, tolerances, bindings, carried, keys, along)


def index_limits(node: SchedulerNode, bindings: Bindings) -> dict[str, int]:
    """Return the size of the indexed axis for each buffer that holds indices."""
    indirect = [index for operation in node.members for index in operation.places]
    for value in value_trees(node):
        for part in walk(value):
            if isinstance(part, Load):
                indirect += part.indirect
    limits: dict[str, int] = {}
    for index in indirect:
        size = evaluate(index.size, bindings)
        for part in walk(index.value):
            if isinstance(part, Load):
                limits[part.buffer] = min(size, limits.get(part.buffer, size))
    return limits


def value_trees(node: SchedulerNode) -> Iterator[Value]:
    """Yield every value tree of a node's operations."""
    for operation in node.members:
        yield from operation.trees


def reduction_length(node: SchedulerNode, bindings: Bindings) -> int:
    """Return the number of summands of one output element, over all stages of the node."""
    lengths = (operation.accumulation_length for operation in node.members)
    return sum(evaluate(length, bindings) for length in lengths) or 1


def node_tolerance(node: SchedulerNode, output: DType, bindings: Bindings) -> Tolerance:
    """Return the bound of an output of that type.

    Casts inside the node also round, possibly to a narrower type than the output's. So do both
    operands of f32 products that may be rounded.
    """
    if node.kind is GroupKind.EXTERN:
        return stored_tolerance(output)
    accumulate = DType.F64 if output.real is DType.F64 else DType.F32
    tolerance = kernel_tolerance(output, accumulate, reduction_length(node, bindings))
    rounding_eps = [
        part.dtype.eps
        for value in value_trees(node)
        for part in walk(value)
        # The reference also rounds casts to 8 bits.
        if isinstance(part, Cast) and part.dtype.is_inexact and not part.dtype.is_float8
    ]
    averaged_operands = (operation.averaged_operand for operation in node.members)
    rounding_eps += [tree.dtype.eps for tree in averaged_operands if tree is not None]
    products = [operation.products for operation in node.members if operation.products]
    rounding_eps.append(2 * max((product.operand_eps for product in products), default=0.0))
    inner_eps = sum(eps for eps in rounding_eps if eps > accumulate.eps)
    return Tolerance(tolerance.relative + inner_eps, tolerance.absolute + inner_eps)


def _draw_storage(
    buffer: BoundBuffer, limit: int | None, rng: np.random.Generator, positive: bool
) -> Array:
    """Return random storage, drawn in pieces: several copies of large weights would not fit.

    Storage gaps between elements are random too.
    """
    storage: Array = np.empty(buffer.elements, dtype=buffer.dtype.numpy)
    for start in range(0, storage.size, _CHUNK_ELEMENTS):
        chunk = storage[start : start + _CHUNK_ELEMENTS]
        if buffer.dtype is DType.BOOL:
            chunk[...] = rng.integers(0, 2, chunk.size)
        elif not buffer.dtype.is_inexact:
            chunk[...] = rng.integers(0, limit or _INTEGER_END, chunk.size, dtype=np.int64)
        else:
            values: Array = rng.standard_normal(chunk.size)
            if buffer.dtype.is_complex:
                values = values + 1j * rng.standard_normal(chunk.size)
            chunk[...] = encode_values(np.abs(values) + 0.1 if positive else values, buffer.dtype)
    return storage


def _expected_outputs(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
    *,
    roundings: RoundingNoise | None = None,
    errors: dict[str, Array] | None = None,
) -> dict[str, Array]:
    values = _input_values(inputs, buffers)
    for operation in node.members:
        values |= interpret(
            operation, values, lowered, bindings, roundings=roundings, errors=errors
        )
    return {name: values[name] for name in node.writes}


def _input_values(
    inputs: Mapping[str, Array], buffers: Mapping[str, BoundBuffer]
) -> dict[str, Array]:
    return {name: from_storage_native(storage, buffers[name]) for name, storage in inputs.items()}


def _add_store_rounding(error: Array, dtype: DType) -> Array:
    """Add the rounding to a type to an error: eps, and half of the smallest positive number."""
    if not dtype.is_float:
        return error.astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = np.minimum(error * (1 + dtype.eps) + dtype.smallest_positive / 2, _MAX_ERROR)
    return np.nextafter(rounded.astype(np.float32), np.float32(np.inf))
