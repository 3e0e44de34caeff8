"""What operations read and write."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.ir.operations import (
    Attention,
    Contraction,
    Extern,
    Operation,
    Pointwise,
    Reduction,
    Scan,
    Store,
)
from scheduler.ir.values import Value, loads


def stores_of(operation: Operation) -> tuple[Store, ...]:
    """The stores of an operation; none for an extern."""
    if isinstance(operation, Pointwise | Reduction | Scan):
        return (operation.store,)
    if isinstance(operation, Contraction | Attention):
        return operation.stores
    return ()


def trees_of(operation: Operation) -> Iterator[Value]:
    """Every tree of an operation: operands first, then what is stored."""
    if isinstance(operation, Reduction | Scan):
        yield operation.value
    elif isinstance(operation, Contraction):
        yield operation.a
        yield operation.b
    elif isinstance(operation, Attention):
        yield from (operation.q, operation.k, operation.v)
        if operation.mask is not None:
            yield operation.mask
    elif isinstance(operation, Extern):
        yield from (view.value for view in operation.inputs.values())
    yield from (store.value for store in stores_of(operation))


def reads_of(operation: Operation) -> tuple[str, ...]:
    """Buffers that an operation reads, in order, each once."""
    found: dict[str, None] = {}
    for tree in trees_of(operation):
        found.update((load.buffer, None) for load in loads(tree))
    return tuple(found)


def writes_of(operation: Operation) -> tuple[str, ...]:
    """Buffers that an operation writes."""
    if isinstance(operation, Extern):
        return operation.outputs
    return tuple(store.buffer for store in stores_of(operation))
