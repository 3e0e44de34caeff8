"""Remove ``torch.vmap`` from a graph, including vmaps that ``associative_scan`` exports: the batch
becomes an explicit dimension.

torch records a function under vmap as for one example: between ``_add_batch_dim``, which hides a
dimension of a tensor, and ``_remove_batch_dim``, which restores it, the shapes in the file lack
that dimension (torch/_functorch/predispatch.py). Here hidden dimensions come first, outer levels
before inner ones. Elementwise ops and matrix products broadcast over them once their operands have
the same rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import sympy

from scheduler.errors import UserError
from scheduler.ir.check import node_references, references, subgraphs
from scheduler.ir.graph import Argument, Expr, Graph, Node, Ref, Subgraph, TensorMeta
from scheduler.ir.ops import LoweringRule, NoKernel, Op
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


def _rules(rows: Iterable[Op], *names: str) -> frozenset[LoweringRule]:
    """The lowering rules of the rows with these names, or of all; aliases of an op share its
    rule."""
    return frozenset(
        row.lowering
        for row in rows
        if (not names or row.name.removeprefix("aten.") in names)
        and not isinstance(row.lowering, NoKernel)
    )


_ELEMENTWISE = (
    _rules(arithmetic.ROWS + logic.ROWS + functions.ROWS + activations.ROWS + special.ROWS)
    - _rules(activations.ROWS, "glu", "prelu", "_prelu_kernel")
    - _rules(special.ROWS, "log_sigmoid_forward")
    | _rules(conversion.ROWS, "to", "_to_copy", "type_as", "clone", "alias", "detach")
    | _rules(complex_numbers.ROWS, "abs", "angle", "sgn")
)
_PRODUCTS = _rules(matmul.ROWS, "mm", "bmm", "matmul")


def with_batch_dimensions(graph: Graph) -> Graph:
    """Return the graph without vmap. Raises ``UserError`` naming the node of an op under vmap that
    is neither elementwise nor a matrix product."""
    if not any(_vmap_step(node) for node in graph.all_nodes_by_name.values()):
        return graph
    unbatched = _Unbatcher(graph)
    nodes = tuple(unbatched.nodes(graph.nodes, graph.outputs))
    return replace(graph, nodes=nodes, tensors=unbatched.tensors)


def _vmap_step(node: Node) -> str:
    """The vmap step that a node performs; "" for an op."""
    module = next((prefix for prefix in _MODULES if node.target.startswith(prefix)), "")
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
        for outer in nodes:
            has_subgraph = any(subgraphs(outer))
            node = outer.map_arguments(self._rewrite_subgraph) if has_subgraph else outer
            step = _vmap_step(node)
            if step == _BEGIN:
                self._modes.append(node.args[-1] if node.args else None)
            elif step == _END:
                del self._modes[-1:]
            elif step == _ADD:
                yield self._add(node)
            elif step == _REMOVE:
                yield from self._remove(node)
            elif not step:
                yield from self._op(node)
        for name in outputs:
            if name in self._batches:
                raise UserError(
                    f"output {name!r} is used outside torch.vmap without its batch dimension"
                )

    def _rewrite_subgraph(self, argument: Argument) -> Argument:
        if not isinstance(argument, Subgraph):
            return argument
        return replace(argument, nodes=tuple(self.nodes(argument.nodes, argument.outputs)))

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
        position = dim + len(batch.sizes)
        sizes = tuple(
            sorted((*batch.sizes, (level, meta.size[position])), key=lambda pair: pair[0])
        )
        self._batches[output] = hidden = _Batch(sizes, batch.rank - 1)
        return self._move_dim(node, name, position, hidden.levels.index(level))

    def _remove(self, node: Node) -> Iterator[Node]:
        match node.args, node.outputs:
            case (Ref(name=name), int(level), _, int(dim)), (output,) if name in self.tensors:
                batch, meta = self._batch_of(name), self.tensors.get(output)
            case _:
                raise UserError(f"node {node.name!r}: {_REMOVE} takes a tensor and three numbers")
        rest = tuple(pair for pair in batch.sizes if pair[0] != level)
        position = dim + batch.rank + 1 if dim < 0 else dim
        if not 0 <= position <= batch.rank or meta is None or len(meta.size) != batch.rank + 1:
            raise UserError(f"node {node.name!r}: {name!r} cannot have a dimension at {dim}")
        position += len(rest)
        if level in batch.levels:
            yield self._move_dim(node, name, batch.levels.index(level), position)
        else:  # the function does not depend on its argument: all examples have the same result
            unsqueezed = self._insert_dim(node, name, position)
            yield unsqueezed
            size = (*(size for _, size in rest), *meta.size)
            yield replace(
                node, target="aten.expand.default", args=(Ref(unsqueezed.name), size), labels=()
            )
            stride = self.tensors[unsqueezed.name].stride
            self._set_meta(output, node, TensorMeta(meta.dtype, size, stride))
        if rest:
            self._batches[output] = _Batch(rest, batch.rank + 1)
        else:
            self.tensors[output] = meta

    def _move_dim(self, node: Node, name: str, source: int, to: int) -> Node:
        """The node as a ``movedim``, which copies nothing."""
        meta = self.tensors[name]
        order = [d for d in range(len(meta.size)) if d != source]
        order.insert(to, source)
        size, stride = (tuple(extents[d] for d in order) for extents in (meta.size, meta.stride))
        self._set_meta(node.outputs[0], node, TensorMeta(meta.dtype, size, stride))
        return replace(node, target="aten.movedim.int", args=(Ref(name), source, to), labels=())

    # -- ops -------------------------------------------------------------------------------------

    def _op(self, node: Node) -> Iterator[Node]:
        """Insert missing hidden dimensions into the operands, then apply the op to them. An op on
        other values is unchanged."""
        if "different" in self._modes and draws_random(node):
            raise UserError(_message(node, "draws different random numbers for each example"))
        operands = dict.fromkeys(node_references(node))
        if not any(name in self._batches for name in operands):
            yield node
            return
        if node.target == _ASSERT:
            return
        is_product = self._classify_as_product(node)
        batches = {name: self._batch_of(name) for name in operands if name in self.tensors}
        rank = max(batch.rank for batch in batches.values())
        if is_product and any(batch.rank < 2 for batch in batches.values()):
            raise UserError(_message(node, "multiplies by a vector"))
        sizes = dict(pair for batch in batches.values() for pair in batch.sizes)
        union = _Batch(tuple(sorted(sizes.items(), key=lambda pair: pair[0])), rank)
        operand_refs: dict[Argument, Argument] = {}
        for name, batch in batches.items():
            operand = name
            # An operand without hidden dimensions broadcasts as is.
            hidden = [i for i, level in enumerate(union.levels) if level not in batch.levels]
            missing = hidden + [len(union.sizes)] * (rank - batch.rank) if batch.sizes else []
            for position in missing:
                inserted = self._insert_dim(node, operand, position)
                operand = inserted.name
                yield inserted
            operand_refs[Ref(name)] = Ref(operand)
        batched = node.map_arguments(
            lambda value: operand_refs.get(value, value) if isinstance(value, Ref) else value
        )
        yield replace(batched, target="aten.matmul.default", labels=()) if is_product else batched
        for output in node.outputs:
            if output not in self.tensors:
                raise UserError(_message(node, "computes a number for each example"))
            meta = self.tensors[output]
            size = (*(extent for _, extent in union.sizes), *meta.size)
            self._set_meta(
                output, node, TensorMeta(meta.dtype, size, layout.contiguous_strides(size))
            )
            self._batches[output] = _Batch(union.sizes, len(meta.size))

    @staticmethod
    def _classify_as_product(node: Node) -> bool:
        """Whether the op is a matrix product, not an op that computes each element from the
        elements at the same index. Raises ``UserError`` for any other op, one that writes to a
        tensor, or that reads a list of tensors."""
        overload = lookup_op(node.target)
        reads_list = any(
            isinstance(value, tuple) and any(references(value)) for _, value in node.arguments()
        )
        if overload is not None and not reads_list:
            if overload.op.lowering in _PRODUCTS:
                return True
            finds_positions = node.target == "aten.where.default"
            writes = bool(overload.mutates) or "out" in overload.defaults
            if overload.op.lowering in _ELEMENTWISE and not finds_positions and not writes:
                return False
        raise UserError(_message(node, "is neither elementwise nor a matrix product"))

    def _insert_dim(self, node: Node, name: str, position: int) -> Node:
        """A new node that inserts a dimension of size 1 into an operand."""
        meta = self.tensors[name]
        size = (*meta.size[:position], _ONE, *meta.size[position:])
        stride = (*meta.stride[:position], _ONE, *meta.stride[position:])
        number = 0
        while (result := f"{node.name}_vmap_{number}") in self._names:
            number += 1
        self._names.add(result)
        self._set_meta(result, node, TensorMeta(meta.dtype, size, stride))
        args = (Ref(name), position)
        return Node(result, "aten.unsqueeze.default", args, {}, (result,), node.origin)

    def _batch_of(self, name: str) -> _Batch:
        return self._batches.get(name, _Batch((), len(self.tensors[name].size)))

    def _set_meta(self, name: str, node: Node, meta: TensorMeta) -> None:
        if len(meta.size) > MAX_RANK:
            raise UserError(
                _message(node, f"has more than {MAX_RANK} dimensions, including the batch")
            )
        self.tensors[name] = meta


def _message(node: Node, why: str) -> str:
    return (
        f"node {node.name!r}: {node.target} under torch.vmap (or associative_scan) {why}, "
        "which is not supported: write the batch dimension explicitly, or export it as "
        "ops on whole tensors"
    )
