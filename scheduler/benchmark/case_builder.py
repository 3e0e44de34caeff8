"""From a scheduler node to a case: random inputs at concrete sizes and what must come out.

Each kernel is checked by itself: it gets random values that its buffers' types can hold exactly,
and its operations' own definition, interpreted in float64, says what is right. Whether the
operations say what the model says is another question: the whole graph against the reference.
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
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.ir.operations import GroupKind, Lowered, Sort
from scheduler.ir.rounding_noise import RoundingNoise
from scheduler.ir.storage import (
    Array,
    BoundBuffer,
    bind_buffer,
    encode_values,
    from_storage_native,
)
from scheduler.ir.values import Cast, Indirect, Load, Value, walk
from scheduler.lowering.interpret import interpret, sorted_keys

# Integers that are no index: small, so that sums and products stay exact.
_PLAIN_INTEGERS = 8
_PIECE = 2**22  # elements made at a time
_MOST = 2.0**127  # of an error that is told from none at all


def make_case(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    rng: np.random.Generator,
    *,
    moved: bool = False,
) -> Case:
    """The case of one scheduler node, with what each element may be off by: running error analysis
    (``scheduler/lowering/running_error.py``), and the rounding to the output's type.

    With ``moved`` each element may also be off by what a kernel's own roundings move it: asked for
    where a kernel did not pass without, since it takes the interpretation several times.

    Where normal inputs leave the domain of a function (the root of a negative variance) for most
    of an output, positive inputs are drawn instead, so that there is something to compare.

    Raises ``UserError`` where sizes that depend on data are given values that contradict each
    other, so that the node would read outside its buffers.
    """
    try:
        return _build_case(node, lowered, bindings, rng, moved)
    except IndexError as error:
        late = {name: value for name, value in bindings.items() if is_unbacked(name)}
        if not late:
            raise
        sizes = format_bindings(late)
        raise UserError(f"{sizes}: sizes that depend on data and do not fit together") from error


def _build_case(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    rng: np.random.Generator,
    moved: bool,
) -> Case:
    buffers = {
        name: bind_buffer(lowered.buffers[name], bindings) for name in (*node.reads, *node.writes)
    }
    limits = index_limits(node, bindings)
    for positive in (False, True):
        inputs = {
            name: _draw(buffers[name], limits.get(name), rng, positive) for name in node.reads
        }
        errors: dict[str, Array] | None = {} if _is_analysed(node) else None
        expected = _expected(node, lowered, bindings, inputs, buffers, errors=errors)
        if not _is_mostly_nan(expected):
            break
    if errors is None:
        carried: dict[str, Array] = {}
        tolerances = {
            name: node_tolerance(node, buffers[name].dtype, bindings) for name in node.writes
        }
    else:
        carried = {
            name: _add_store_rounding(errors[name], buffers[name].dtype) for name in node.writes
        }
        tolerances = {name: rounding_tolerance(buffers[name].dtype) for name in node.writes}
    if moved:
        for name, off in _rounding_bounds(
            node, lowered, bindings, inputs, expected, buffers, rng
        ).items():
            carried[name] = off + carried.get(name, np.float32(0))
    keys, along = _keys(node, lowered, bindings, inputs, buffers)
    for name in keys:
        tolerances[name] = node_tolerance(node, _key_type(node), bindings)
    return Case(buffers, inputs, expected, tolerances, bindings, carried, keys, along)


def index_limits(node: SchedulerNode, bindings: Bindings) -> dict[str, int]:
    """For buffers that hold indices: how many elements the axis has that they index."""
    limits: dict[str, int] = {}
    for indirect in _indirects(node):
        size = evaluate(indirect.size, bindings)
        for inner in walk(indirect.value):
            if isinstance(inner, Load):
                limits[inner.buffer] = min(size, limits.get(inner.buffer, size))
    return limits


def _indirects(node: SchedulerNode) -> Iterator[Indirect]:
    """Every position of a node's operations that is read from a tensor, read there or written."""
    for operation in node.members:
        yield from operation.places
    for value in value_trees(node):
        for part in walk(value):
            if isinstance(part, Load):
                yield from part.indirect


def value_trees(node: SchedulerNode) -> Iterator[Value]:
    """Every value tree of a node's operations."""
    for operation in node.members:
        yield from operation.trees


def reduction_length(node: SchedulerNode, bindings: Bindings) -> int:
    """Summands behind one output element, over all stages of the node."""
    lengths = (operation.accumulation_length for operation in node.members)
    return sum(evaluate(length, bindings) for length in lengths) or 1


def node_tolerance(node: SchedulerNode, output: DType, bindings: Bindings) -> Tolerance:
    """The bound of an output of that type. A cast inside the node rounds too, perhaps to a
    narrower type than the output's; so do products of f32 that may be rounded, both operands."""
    if node.kind is GroupKind.EXTERN:
        return stored_tolerance(output)
    accumulate = DType.F64 if output.real is DType.F64 else DType.F32
    tolerance = kernel_tolerance(output, accumulate, reduction_length(node, bindings))
    casts = [
        part.dtype.eps
        for value in value_trees(node)
        for part in walk(value)
        # What is rounded to 8 bits the reference rounds too.
        if isinstance(part, Cast) and part.dtype.is_inexact and not part.dtype.is_float8
    ]
    averaged = (operation.averaged_operand for operation in node.members)
    casts += [tree.dtype.eps for tree in averaged if tree is not None]
    made = [operation.products for operation in node.members if operation.products]
    casts.append(2 * max((products.operand_eps for products in made), default=0.0))
    inner = sum(eps for eps in casts if eps > accumulate.eps)
    return Tolerance(tolerance.relative + inner, tolerance.absolute + inner)


def _draw(
    buffer: BoundBuffer, limit: int | None, rng: np.random.Generator, positive: bool
) -> Array:
    """Random storage, in pieces: a model's largest weights would not fit several times over.

    Between the elements that indices reach lie random ones too.
    """
    storage: Array = np.empty(buffer.elements, dtype=buffer.dtype.numpy)
    for start in range(0, storage.size, _PIECE):
        piece = storage[start : start + _PIECE]
        if buffer.dtype is DType.BOOL:
            piece[...] = rng.integers(0, 2, piece.size)
        elif not buffer.dtype.is_inexact:
            piece[...] = rng.integers(0, limit or _PLAIN_INTEGERS, piece.size, dtype=np.int64)
        else:
            drawn: Array = rng.standard_normal(piece.size)
            if buffer.dtype.is_complex:
                drawn = drawn + 1j * rng.standard_normal(piece.size)
            piece[...] = encode_values(np.abs(drawn) + 0.1 if positive else drawn, buffer.dtype)
    return storage


def _expected(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
    *,
    roundings: RoundingNoise | None = None,
    errors: dict[str, Array] | None = None,
) -> dict[str, Array]:
    values = {name: from_storage_native(storage, buffers[name]) for name, storage in inputs.items()}
    for operation in node.members:
        values |= interpret(
            operation, values, lowered, bindings, roundings=roundings, errors=errors
        )
    return {name: values[name] for name in node.writes}


def _is_analysed(node: SchedulerNode) -> bool:
    """Whether errors of the node are known; those of complex numbers are not."""
    parts = (part for value in value_trees(node) for part in walk(value))
    return not any(part.dtype.is_complex for part in parts)


def _add_store_rounding(error: Array, dtype: DType) -> Array:
    """An error, with its own rounding to a type, and half of the type's least number."""
    if not dtype.is_float:
        return error.astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = np.minimum(error * (1 + dtype.eps) + dtype.smallest_positive / 2, _MOST)
    return np.nextafter(rounded.astype(np.float32), np.float32(np.inf))


def _keys(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
) -> tuple[dict[str, Array], dict[str, int]]:
    """Where indices of a sort are stored: its keys, and along which dimension; nothing where the
    keys are read as they are, or are no floats, since then they have one order."""
    operation = node.members[0]
    if not isinstance(operation, Sort) or isinstance(operation.key, Load):
        return {}, {}
    if not operation.key.dtype.is_float:
        return {}, {}
    values = {name: from_storage_native(storage, buffers[name]) for name, storage in inputs.items()}
    keys: dict[str, Array] = {}
    along: dict[str, int] = {}
    for store in operation.stores:
        if not buffers[store.buffer].dtype.is_float:
            keys[store.buffer] = sorted_keys(operation, store, values, lowered, bindings)
            along[store.buffer] = store.index.index(operation.place.var)
    return keys, along


def _key_type(node: SchedulerNode) -> DType:
    operation = node.members[0]
    assert isinstance(operation, Sort)
    return operation.key.dtype


def _rounding_bounds(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """How far the kernel's own roundings may move each element."""

    def run() -> Mapping[str, Array]:
        return _expected(node, lowered, bindings, inputs, buffers, roundings=RoundingNoise(rng))

    return rounding_bounds(run, expected, {name: buffers[name].dtype for name in expected})


def _is_mostly_nan(expected: Mapping[str, Array]) -> bool:
    floats = [a for a in expected.values() if np.issubdtype(a.dtype, np.inexact) and a.size]
    return any(np.count_nonzero(np.isnan(a)) * 2 > a.size for a in floats)
