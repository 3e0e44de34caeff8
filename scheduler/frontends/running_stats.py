"""Make the writes of running statistics in training normalisations explicit, as torch decomposes
them.

In a plain export ``batch_norm`` and ``instance_norm`` write the given statistics in place without
stating it in the node. Here the new statistics become results of a node, and a ``copy_`` writes
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import sympy

from scheduler.errors import UserError
from scheduler.ir.graph import Argument, Graph, Node, Ref, TensorMeta
from scheduler.ir.ops import UnsupportedOpError
from scheduler.lowering.ops import resolve_op

_ONE = sympy.Integer(1)
_RESERVING = "aten._batch_norm_with_update.default"  # always in training
_BATCH_NORMS = (
    _RESERVING,
    "aten.batch_norm.default",
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.default",
)
_INSTANCE_NORM = "aten.instance_norm.default"
_FUNCTIONAL = "aten._native_batch_norm_legit_functional.default"
_RESERVING_FUNCTIONAL = "aten._batch_norm_with_update_functional.default"


def with_written_statistics(graph: Graph) -> Graph:
    """Return the graph with each node that updates running statistics replaced by nodes that
    compute the new statistics and ``aten.copy_`` nodes that write them."""
    if not any(node.target in (*_BATCH_NORMS, _INSTANCE_NORM) for node in graph.nodes):
        return graph
    rewriter = _StatsRewriter(graph)
    nodes = tuple(new for node in graph.nodes for new in rewriter.nodes(node))
    return replace(graph, nodes=nodes, tensors=rewriter.tensors)


class _StatsRewriter:
    def __init__(self, graph: Graph) -> None:
        self.tensors: dict[str, TensorMeta] = dict(graph.tensors)
        self._names_in_use = {*graph.tensors, *graph.sym_ints, *(node.name for node in graph.nodes)}

    def nodes(self, node: Node) -> Iterator[Node]:
        """The replacement of a node: the node itself if it updates nothing."""
        if node.target not in (*_BATCH_NORMS, _INSTANCE_NORM):
            yield node
            return
        try:
            args = resolve_op(node.target).bind(node)
        except (UnsupportedOpError, UserError):  # lowering reports the error
            yield node
            return
        training = args.get("training", args.get("use_input_stats", node.target == _RESERVING))
        mean, variance = args.get("running_mean"), args.get("running_var")
        updates = training is True and isinstance(args["momentum"], int | float)
        if not (updates and self._is_tensor(mean) and self._is_tensor(variance)):
            yield node
        elif node.target == _INSTANCE_NORM:
            yield from self._instance_norm(node, args)
        else:
            yield from self._batch_norm(node, args)

    def _is_tensor(self, argument: Argument) -> bool:
        return isinstance(argument, Ref) and argument.name in self.tensors

    def _batch_norm(self, node: Node, args: Mapping[str, Argument]) -> Iterator[Node]:
        mean, variance = args["running_mean"], args["running_var"]
        assert isinstance(mean, Ref) and isinstance(variance, Ref)
        state = self.tensors[mean.name]
        saved = [self._value(node, part, state) for part in ("save_mean", "save_invstd")]
        new = [self._value(node, part, state) for part in ("running_mean", "running_var")]
        arguments = ("input", "weight", "bias", "running_mean", "running_var")
        reserves = node.target == _RESERVING
        labels = (*arguments, *(() if reserves else ("training",)), "momentum", "eps")
        yield replace(
            node,
            target=_RESERVING_FUNCTIONAL if reserves else _FUNCTIONAL,
            args=tuple(args[label] for label in labels),
            kwargs={},
            labels=labels,
            # The native forms return the saved statistics themselves.
            outputs=(*node.outputs, *saved[len(node.outputs) - 1 :], *new),
        )
        yield self._write(node, mean, new[0])
        yield self._write(node, variance, new[1])

    def _instance_norm(self, node: Node, args: Mapping[str, Argument]) -> Iterator[Node]:
        """The mean over the samples of each sample's mean and variance, as torch computes it."""
        x, momentum = args["input"], args["momentum"]
        assert isinstance(x, Ref) and isinstance(momentum, int | float)
        functional = {**args, "running_mean": None, "running_var": None}
        yield replace(node, args=tuple(functional.values()), labels=tuple(functional), kwargs={})
        size = self.tensors[x.name].size
        dims = tuple(range(2, len(size)))
        for label, target, options in (
            ("running_mean", "aten.mean.dim", {}),
            ("running_var", "aten.var.correction", {"correction": 1}),
        ):
            old = args[label]
            assert isinstance(old, Ref)
            dtype = self.tensors[old.name].dtype
            source = x
            if self.tensors[x.name].dtype is not dtype:
                meta = replace(self.tensors[x.name], dtype=dtype)
                source = Ref(self._value(node, f"{label}_of", meta))
                yield self._node(node, "aten._to_copy.default", source.name, x, dtype=dtype)
            per_sample = TensorMeta(dtype, size[:2], (size[1], _ONE))
            by_sample = self._value(node, f"{label}_each", per_sample)
            yield self._node(node, target, by_sample, source, dims, **options)
            mean, new_part, old_part, new = (
                self._value(node, part, TensorMeta(dtype, size[1:2], (_ONE,)))
                for part in (f"{label}_mean", f"{label}_part", f"{label}_rest", label)
            )
            yield self._node(node, "aten.mean.dim", mean, Ref(by_sample), (0,))
            yield self._node(node, "aten.mul.Tensor", new_part, Ref(mean), momentum)
            yield self._node(node, "aten.mul.Tensor", old_part, old, 1 - momentum)
            yield self._node(node, "aten.add.Tensor", new, Ref(old_part), Ref(new_part))
            yield self._write(node, old, new)

    def _write(self, node: Node, into: Ref, value: str) -> Node:
        written = self._value(node, f"{value}_written", self.tensors[into.name])
        return self._node(node, "aten.copy_.default", written, into, Ref(value))

    def _node(
        self, node: Node, target: str, name: str, *args: Argument, **kwargs: Argument
    ) -> Node:
        return Node(name, target, args, kwargs, (name,), node.origin)

    def _value(self, node: Node, part: str, meta: TensorMeta) -> str:
        """A unique name for a new value: the node's name, the part, and a number if that is
        taken."""
        plain = part if part.startswith(node.name) else f"{node.name}_{part}"
        name, count = plain, 0
        while name in self._names_in_use:
            count += 1
            name = f"{plain}_{count}"
        self._names_in_use.add(name)
        self.tensors[name] = meta
        return name
