"""Remove ``torch.vmap`` from a graph, including vmaps that ``associative_scan`` exports: the batch
becomes an explicit dimension.

torch records a function under vmap as for one example: between ``_add_batch_dim``, which hides a
dimension of a tensor, and ``_remove_batch_dim``, which restores it, the shapes in the file lack
that dimension (torch/_functorch/predispatch.py). Here hidden dimensions come first, outer levels
before inner ones. Elementwise ops and matrix products broadcast over them once their operands have
the same rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy

from scheduler.errors import UserError
from scheduler.ir.check import node_references, references, subgraphs
from scheduler.ir.graph import Argument, Expr, Graph, Node, Ref, Subgraph, TensorMeta
from scheduler.ir.ops import LoweringRule, NoKernel, Op, Overload
from scheduler.ir.random import draws_random
from scheduler.limits import MAX_RANK
from scheduler.lowering import layout
from scheduler.lowering.ops import (
    activations,
    arithmetic,
    complex_numbers,
    conversion,
    functions,
    logic,
    lookup_op,
    matmul,
    special,
)

_MODULES = ("torch._functorch.predispatch.", "torch._C._functorch.")
_ADD, _REMOVE = "_add_batch_dim", "_remove_batch_dim"
_BEGIN, _END = "_vmap_increment_nesting", "_vmap_decrement_nesting"
_VMAP_CALLS = frozenset((_ADD, _REMOVE, _BEGIN, _END, "lazy_load_decompositions"))
_ASSERT = "aten._assert_tensor_metadata.default"  # about one example; true of the export
_ONE = sympy.Integer(1)


def _rules(rows: Sequence[Op], *names: str) -> frozenset[LoweringRule]:
    """The lowering rules of the rows with these names; aliases of an op share its rule."""
    found = (row.lowering for row in rows if row.name.removeprefix("aten.") in names)
    return frozenset(rule for rule in found if not isinstance(rule, NoKernel))


def _all_rules(*tables: Sequence[Op]) -> frozenset[LoweringRule]:
    rules = (row.lowering for rows in tables for row in rows)
    return frozenset(rule for rule in rules if not isinstance(rule, NoKernel))


_ELEMENTWISE = (
    _all_rules(arithmetic.ROWS, logic.ROWS, functions.ROWS, activations.ROWS, special.ROWS)
    - _rules(activations.ROWS, "glu", "prelu", "_prelu_kernel")
    - _rules(special.ROWS, "log_sigmoid_forward")
    | _rules(conversion.ROWS, "to", "_to_copy", "type_as", "clone", "alias", "detach")
    | _rules(complex_numbers.ROWS, "abs", "angle", "sgn")
)
_PRODUCTS = _rules(matmul.ROWS, "mm", "bmm", "matmul")


def with_batch_dimensions(graph: Graph) -> Graph:
    """Return the graph without vmap. Raises ``UserError`` naming the node of an op under vmap that
    is neither elementwise nor a matrix product."""
    if not any(_step(node) for node in graph.all_nodes_by_name.values()):
        return graph
    unbatched = _Unbatcher(graph)
    nodes = tuple(unbatched.nodes(graph.nodes, graph.outputs))
    return replace(graph, nodes=nodes, tensors=unbatched.tensors)


def _step(node: Node) -> str:
    """The vmap step that a node performs; "" for an op."""
    module = next((each for each in _MODULES if node.target.startswith(each)), "")
    name = node.target.removeprefix(module)
    return name if module and name in _VMAP_CALLS else ""


@dataclass(frozen=True)
class _Batch:
    """The dimensions of a value that vmap hides: level and size of each, outermost first. ``rank``
    counts the other dimensions."""

    sizes: tuple[tuple[int, Expr], ...]
    rank: int

    @property
    def levels(self) -> tuple[int, ...]:
        return tuple(level for level, _ in self.sizes)


class _Unbatcher:
    """Rewrites a graph's nodes; ``tensors`` holds the metas of the new values."""

    def __init__(self, graph: Graph) -> None:
        self.tensors = dict(graph.tensors)
        self._batches: dict[str, _Batch] = {}
        self._modes: list[Argument] = []  # randomness modes of the enclosing vmaps
        self._names = {*graph.all_nodes_by_name, *graph.tensors, *graph.sym_ints}
        self._names.update(
            name for node in graph.all_nodes_by_name.values() for name in node.outputs
        )

    def nodes(self, nodes: Sequence[Node], outputs: Sequence[str]) -> Iterator[Node]:
        """Rewrite the nodes of a graph, or of a subgraph among a node's arguments."""
        for node in nodes:
            yield from self._node(_with_inner(node, self._inner))
        for name in outputs:
            if name in self._batches:
                raise UserError(
                    f"output {name!r} is used outside torch.vmap without its batch dimension"
                )

    def _inner(self, part: Subgraph) -> Subgraph:
        return replace(part, nodes=tuple(self.nodes(part.nodes, part.outputs)))

    def _node(self, node: Node) -> Iterator[Node]:
        step = _step(node)
        if step == _BEGIN:
            self._modes.append(node.args[-1] if node.args else None)
        elif step == _END:
            del self._modes[-1:]
        elif step == _ADD:
            yield self._add(node)
        elif step == _REMOVE:
            yield from self._remove(node)
        elif not step:
            if "different" in self._modes and draws_random(node):
                raise UserError(_message(node, "draws different random numbers for each example"))
            if not any(name in self._batches for name in node_references(node)):
                yield node
            elif node.target != _ASSERT:
                yield from self._op(node)

    # -- hiding and restoring a dimension --------------------------------------------------------

    def _add(self, node: Node) -> Node:
        match node.args, node.outputs:
            case (Ref(name=name), int(dim), int(level)), (output,) if name in self.tensors:
                batch, meta = self._batch_of(name), self.tensors[name]
            case _:
                raise UserError(
                    f"node {node.name!r}: {_ADD} takes a tensor, a dimension and a level"
                )
        if not 0 <= dim < batch.rank or level in batch.levels:
            raise UserError(f"node {node.name!r}: {name!r} has no dimension {dim} to hide")
        at = dim + len(batch.sizes)
        sizes = tuple(sorted((*batch.sizes, (level, meta.size[at])), key=lambda each: each[0]))
        self._batches[output] = made = _Batch(sizes, batch.rank - 1)
        return self._move_dim(node, name, at, made.levels.index(level))

    def _remove(self, node: Node) -> Iterator[Node]:
        match node.args, node.outputs:
            case (Ref(name=name), int(level), _, int(dim)), (output,) if name in self.tensors:
                batch, shown = self._batch_of(name), self.tensors.get(output)
            case _:
                raise UserError(f"node {node.name!r}: {_REMOVE} takes a tensor and three numbers")
        rest = tuple(each for each in batch.sizes if each[0] != level)
        at = dim + batch.rank + 1 if dim < 0 else dim
        if not 0 <= at <= batch.rank or shown is None or len(shown.size) != batch.rank + 1:
            raise UserError(f"node {node.name!r}: {name!r} cannot have a dimension at {dim}")
        at += len(rest)
        if level in batch.levels:
            yield self._move_dim(node, name, batch.levels.index(level), at)
        else:  # the function does not depend on its argument: all examples have the same result
            wide = self._insert_dim(node, name, at)
            yield wide
            size = (*(size for _, size in rest), *shown.size)
            yield replace(
                node, target="aten.expand.default", args=(Ref(wide.name), size), labels=()
            )
            stride = self.tensors[wide.name].stride
            self._state(output, node, TensorMeta(shown.dtype, size, stride))
        if rest:
            self._batches[output] = _Batch(rest, batch.rank + 1)
        else:
            self.tensors[output] = shown

    def _move_dim(self, node: Node, name: str, source: int, to: int) -> Node:
        """The node as a ``movedim``, which copies nothing."""
        meta = self.tensors[name]
        order = [d for d in range(len(meta.size)) if d != source]
        order.insert(to, source)
        size, stride = (tuple(of[d] for d in order) for of in (meta.size, meta.stride))
        self._state(node.outputs[0], node, TensorMeta(meta.dtype, size, stride))
        return replace(node, target="aten.movedim.int", args=(Ref(name), source, to), labels=())

    # -- ops -------------------------------------------------------------------------------------

    def _op(self, node: Node) -> Iterator[Node]:
        """Insert missing hidden dimensions into the operands, then apply the op to them."""
        overload, operands = lookup_op(node.target), _operands(node)
        is_product = overload is not None and overload.op.lowering in _PRODUCTS
        if overload is None or not (is_product or _is_elementwise(overload)) or operands is None:
            raise UserError(_message(node, "is neither elementwise nor a matrix product"))
        batches = {name: self._batch_of(name) for name in operands if name in self.tensors}
        rank = max(batch.rank for batch in batches.values())
        if is_product and any(batch.rank < 2 for batch in batches.values()):
            raise UserError(_message(node, "multiplies by a vector"))
        sizes = dict(pair for batch in batches.values() for pair in batch.sizes)
        union = _Batch(tuple(sorted(sizes.items(), key=lambda each: each[0])), rank)
        names: dict[str, str] = {}
        for name, batch in batches.items():
            names[name] = name
            for place in self._missing_dims(batch, union):
                inserted = self._insert_dim(node, names[name], place)
                names[name] = inserted.name
                yield inserted
        made = _renamed(node, names)
        yield replace(made, target="aten.matmul.default", labels=()) if is_product else made
        for output in node.outputs:
            if output not in self.tensors:
                raise UserError(_message(node, "computes a number for each example"))
            meta = self.tensors[output]
            size = (*(extent for _, extent in union.sizes), *meta.size)
            self._state(output, node, TensorMeta(meta.dtype, size, layout.contiguous_strides(size)))
            self._batches[output] = _Batch(union.sizes, len(meta.size))

    @staticmethod
    def _missing_dims(batch: _Batch, union: _Batch) -> list[int]:
        """Positions of the dimensions to insert into an operand, in order. An operand without
        hidden dimensions broadcasts as is."""
        if not batch.sizes:
            return []
        hidden = [at for at, level in enumerate(union.levels) if level not in batch.levels]
        return hidden + [len(union.sizes)] * (union.rank - batch.rank)

    def _insert_dim(self, node: Node, name: str, place: int) -> Node:
        """A new node that inserts a dimension of size 1 into an operand."""
        meta = self.tensors[name]
        size = (*meta.size[:place], _ONE, *meta.size[place:])
        stride = (*meta.stride[:place], _ONE, *meta.stride[place:])
        number = 0
        while (made := f"{node.name}_vmap_{number}") in self._names:
            number += 1
        self._names.add(made)
        self._state(made, node, TensorMeta(meta.dtype, size, stride))
        args = (Ref(name), place)
        return Node(made, "aten.unsqueeze.default", args, {}, (made,), node.origin)

    def _batch_of(self, name: str) -> _Batch:
        return self._batches.get(name, _Batch((), len(self.tensors[name].size)))

    def _state(self, name: str, node: Node, meta: TensorMeta) -> None:
        if len(meta.size) > MAX_RANK:
            raise UserError(
                _message(node, f"has more than {MAX_RANK} dimensions, including the batch")
            )
        self.tensors[name] = meta


def _is_elementwise(overload: Overload) -> bool:
    """Whether the op computes each element from the elements at the same index and writes
    nothing."""
    name = overload.target.rpartition(".")[2]
    finds_places = overload.op.name == "aten.where" and name == "default"
    writes = bool(overload.mutates) or "out" in overload.defaults
    return overload.op.lowering in _ELEMENTWISE and not finds_places and not writes


def _operands(node: Node) -> list[str] | None:
    """The values that a node reads; None if they are in a list."""
    arguments = [value for _, value in node.arguments()]
    if any(isinstance(value, tuple) and any(references(value)) for value in arguments):
        return None
    return list(dict.fromkeys(node_references(node)))


def _message(node: Node, why: str) -> str:
    return (
        f"node {node.name!r}: {node.target} under torch.vmap (or associative_scan) {why}, "
        "which is not supported: write the batch dimension explicitly, or export it as "
        "ops on whole tensors"
    )


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    def renamed(value: Argument) -> Argument:
        return Ref(names.get(value.name, value.name)) if isinstance(value, Ref) else value

    return replace(
        node,
        args=tuple(map(renamed, node.args)),
        kwargs={key: renamed(value) for key, value in node.kwargs.items()},
    )


def _with_inner(node: Node, change: Callable[[Subgraph], Subgraph]) -> Node:
    """The node with ``change`` applied to the graphs among its arguments."""

    def changed(value: Argument) -> Argument:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return change(value) if isinstance(value, Subgraph) else value

    if not any(subgraphs(node)):
        return node
    return replace(
        node,
        args=tuple(map(changed, node.args)),
        kwargs={key: changed(value) for key, value in node.kwargs.items()},
    )
