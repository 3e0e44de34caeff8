"""From a scheduler node to a case: random inputs at concrete sizes and what must come out.

Each kernel is checked by itself: it gets random values that its buffers' types can hold exactly,
and its operations' own definition, interpreted in float64, says what is right. Whether the
operations say what the model says is another question: the whole graph against the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.moved import most_moved
from scheduler.benchmark.tolerance import Tolerance, kernel_tolerance, stored_tolerance
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.ir.operations import GroupKind, Lowered, Sort
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.roundings import Roundings
from scheduler.ir.storage import (
    Array,
    BoundBuffer,
    bind_buffer,
    held_storage,
    rounded_storage,
)
from scheduler.ir.values import Call, Cast, Indirect, Load, Value, loads, walk
from scheduler.lowering.interpret import interpret, sorted_keys
from scheduler.outcome import UserError

# Integers that are no index: small, so that sums and products stay exact.
_PLAIN_INTEGERS = 8
_PIECE = 2**22  # elements made at a time


def make_case(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    rng: np.random.Generator,
    *,
    moved: bool = False,
) -> Case:
    """The case of one scheduler node.

    With ``moved`` each element may also be off by what a kernel's own roundings move it: asked for
    where a kernel did not pass without, since it takes the interpretation several times.

    Where normal inputs leave the domain of a function (the root of a negative variance) for most
    of an output, positive inputs are drawn instead, so that there is something to compare.

    Raises ``UserError`` where sizes that depend on data are given values that contradict each
    other, so that the node would read outside its buffers.
    """
    try:
        return _made_case(node, lowered, bindings, rng, moved)
    except IndexError as error:
        late = {name: value for name, value in bindings.items() if is_unbacked(name)}
        if not late:
            raise
        sizes = format_bindings(late)
        raise UserError(f"{sizes}: sizes that depend on data and do not fit together") from error


def _made_case(
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
        expected = _expected(node, lowered, bindings, inputs, buffers)
        if not _mostly_nan(expected):
            break
    magnitude = _averaged_magnitude(node, inputs, buffers)
    tolerances = {
        name: replace(node_tolerance(node, buffers[name].dtype, bindings), magnitude=magnitude)
        for name in node.writes
    }
    carried = _carried(node, lowered, bindings, inputs, expected, buffers)
    if moved:
        for name, off in _moved(node, lowered, bindings, inputs, expected, buffers, rng).items():
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
    for value in trees(node):
        for part in walk(value):
            if isinstance(part, Load):
                yield from part.indirect


def trees(node: SchedulerNode) -> Iterator[Value]:
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
        # Two roundings of nearly the same to 8 bits may be neighbours.
        2 * part.dtype.eps if part.dtype.is_float8 else part.dtype.eps
        for value in trees(node)
        for part in walk(value)
        if isinstance(part, Cast) and part.dtype.is_inexact
    ]
    averaged = (operation.averaged for operation in node.members)
    casts += [tree.dtype.eps for tree in averaged if tree is not None]
    made = [operation.products for operation in node.members if operation.products]
    casts.append(2 * max((products.operand_eps for products in made), default=0.0))
    inner = sum(eps for eps in casts if eps > accumulate.eps)
    return Tolerance(tolerance.relative + inner, tolerance.absolute + inner)


def quantizes(node: SchedulerNode) -> bool:
    """Whether a node rounds to whole numbers or floats of 8 bits: an element of its results may be
    a whole step from the reference's."""
    parts = (part for value in trees(node) for part in walk(value))
    return any(
        (isinstance(part, Call) and FUNCTIONS[part.op].jumps)
        or (isinstance(part, Cast) and part.dtype.is_float8)
        for part in parts
    )


def _averaged_magnitude(
    node: SchedulerNode, inputs: Mapping[str, Array], buffers: Mapping[str, BoundBuffer]
) -> float:
    """The largest value that an attention of the node averages; 0 without one."""
    largest = 0.0
    for operation in node.members:
        if operation.averaged is not None:
            for load in loads(operation.averaged):
                values = held_storage(inputs[load.buffer], buffers[load.buffer])
                largest = max(largest, float(np.abs(values).max(initial=0.0)))
    return largest


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
            piece[...] = rounded_storage(np.abs(drawn) + 0.1 if positive else drawn, buffer.dtype)
    return storage


def _expected(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
    *,
    turned: int = 0,
    roundings: Roundings | None = None,
) -> dict[str, Array]:
    values = {name: held_storage(storage, buffers[name]) for name, storage in inputs.items()}
    for operation in node.members:
        values |= interpret(
            operation, values, lowered, bindings, turned=turned, roundings=roundings
        )
    return {name: values[name] for name in node.writes}


def _carried(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    buffers: Mapping[str, BoundBuffer],
) -> dict[str, Array]:
    """How far the rounding of an argument, of a sine or of ``round``, moves each element of the
    outputs that depend on it. A position times a frequency is some hundreds; its sine has no digit
    that the product, rounded, does not have. What is quantized halfway between two whole numbers
    may become either."""
    calls = (part for value in trees(node) for part in walk(value) if isinstance(part, Call))
    if not any(FUNCTIONS[call.op].hangs_on_rounding for call in calls):
        return {}
    carried: dict[str, Array] = {}
    for turned in (-1, 1):
        moved = _expected(node, lowered, bindings, inputs, buffers, turned=turned)
        for name, value in expected.items():
            if value.dtype != np.bool_:
                wide = value.astype(np.result_type(value, np.float64))
                off = np.nan_to_num(np.abs(moved[name] - wide), nan=0.0, posinf=0.0)
                carried[name] = np.maximum(carried.get(name, 0.0), off).astype(np.float32)
    return carried


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
    values = {name: held_storage(storage, buffers[name]) for name, storage in inputs.items()}
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


def _moved(
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
        return _expected(node, lowered, bindings, inputs, buffers, roundings=Roundings(rng))

    return most_moved(run, expected, {name: buffers[name].dtype for name in expected})


def _mostly_nan(expected: Mapping[str, Array]) -> bool:
    floats = [a for a in expected.values() if np.issubdtype(a.dtype, np.inexact) and a.size]
    return any(np.count_nonzero(np.isnan(a)) * 2 > a.size for a in floats)
