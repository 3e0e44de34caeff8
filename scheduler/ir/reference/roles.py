"""What a graph does with its inputs, as far as random values for them must respect it.

Walks the nodes backwards, so that what is asked of a value is known before the node that makes it
hands the demand on to its own arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.ir.graph import Argument, Graph, InputKind, Node, Ref
from scheduler.ir.index.functions import evaluate
from scheduler.ir.ops import UnsupportedOpError, bind, spec_of

# Ops whose elements are those of ``self`` (or of ``tensors``), at other places or in another type.
_PASSING = frozenset(
    {
        *("view", "_unsafe_view", "reshape", "view_as", "reshape_as", "expand", "expand_as"),
        *("broadcast_to", "permute", "transpose", "swapaxes", "t", "mT", "numpy_T", "movedim"),
        *("flatten", "unflatten", "squeeze", "unsqueeze", "slice", "select", "narrow", "split"),
        *("split_with_sizes", "chunk", "unbind", "diagonal", "alias", "detach", "lift_fresh"),
        *("lift_fresh_copy", "contiguous", "clone", "to", "_to_copy", "type_as", "cat", "concat"),
        *("stack", "flip", "roll", "repeat", "tile", "repeat_interleave", "gather", "index"),
        *("index_select", "take_along_dim"),
    }
)
# The matrix argument of a multiplication, and which of its axes are summed over.
_MATRICES: Mapping[str, tuple[str, slice]] = {
    "linear": ("weight", slice(-1, None)),
    "conv1d": ("weight", slice(1, None)),
    "conv2d": ("weight", slice(1, None)),
    "conv3d": ("weight", slice(1, None)),
    "convolution": ("weight", slice(1, None)),
    "mm": ("mat2", slice(-2, -1)),
    "bmm": ("mat2", slice(-2, -1)),
    "addmm": ("mat2", slice(-2, -1)),
    "baddbmm": ("batch2", slice(-2, -1)),
    "matmul": ("other", slice(-2, -1)),
}
_NORMS = frozenset(
    {
        *("layer_norm", "native_layer_norm", "rms_norm", "group_norm", "native_group_norm"),
        *("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"),
        "instance_norm",
    }
)
_POSITIVE = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"})


@dataclass(frozen=True)
class Role:
    """What is asked of a value's elements.

    ``below``: integers are indices smaller than it. ``fan_in``: how many of them are summed.
    ``gain``: a factor near 1. ``positive``: greater than 0.
    """

    below: int | None = None
    fan_in: int = 0
    gain: bool = False
    positive: bool = False


def input_roles(graph: Graph, bindings: Mapping[str, int]) -> dict[str, Role]:
    """Roles by value, of every value of which something is asked."""
    roles: dict[str, Role] = {}
    sizes = _Sizes(graph, bindings)
    gains = {
        value.name
        for value in graph.inputs
        if value.kind is InputKind.PARAMETER and len(graph.tensors[value.name].size) == 1
    }
    for node in reversed(graph.nodes):
        try:
            function, args = spec_of(node.target).function, bind(node)
        except UnsupportedOpError:
            continue
        for name, role in _demands(function, args, sizes):
            roles[name] = _merged(roles.get(name, Role()), role)
        for name, role in _passed(node, function, args, roles):
            roles[name] = _merged(roles.get(name, Role()), role)
        if function == "mul":
            for name in {arg.name for arg in args.values() if isinstance(arg, Ref)} & gains:
                roles[name] = _merged(roles.get(name, Role()), Role(gain=True))
    return roles


class _Sizes:
    def __init__(self, graph: Graph, bindings: Mapping[str, int]) -> None:
        self._graph = graph
        self._bindings = dict(bindings)

    def of(self, argument: Argument, place: slice) -> int | None:
        """Product of some of a tensor's sizes; None where it is no tensor, or depends on data."""
        meta = self._graph.tensors.get(argument.name) if isinstance(argument, Ref) else None
        if meta is None:
            return None
        try:
            return math.prod(evaluate(size, self._bindings) for size in meta.size[place])
        except KeyError:
            return None

    def along(self, argument: Argument, dim: Any) -> int | None:
        """One size of a tensor."""
        if not isinstance(dim, int):
            return None
        return self.of(argument, slice(dim, dim + 1 or None))


def _demands(
    function: str, args: Mapping[str, Argument], sizes: _Sizes
) -> Iterator[tuple[str, Role]]:
    """What an op asks of its own arguments."""
    if function == "embedding":
        yield from _role(args["indices"], Role(below=sizes.along(args["weight"], 0)))
    elif function in ("gather", "index_select", "scatter", "scatter_add"):
        yield from _role(args["index"], Role(below=sizes.along(args["self"], args["dim"])))
    elif function == "take_along_dim" and args["dim"] is not None:
        yield from _role(args["indices"], Role(below=sizes.along(args["self"], args["dim"])))
    elif function in ("index", "index_put"):
        indices = args["indices"]
        for axis, index in enumerate(indices if isinstance(indices, tuple) else ()):
            yield from _role(index, Role(below=sizes.along(args["self"], axis)))
    elif function == "one_hot" and isinstance(args["num_classes"], int):
        classes = args["num_classes"]
        yield from _role(args["self"], Role(below=classes if classes > 0 else None))
    elif function in _MATRICES:
        name, place = _MATRICES[function]
        yield from _role(args[name], Role(fan_in=sizes.of(args[name], place) or 0))
    elif function in _NORMS:
        yield from _role(args["weight"], Role(gain=True))
        yield from _role(args.get("running_var"), Role(positive=True))
    elif function in _POSITIVE:
        yield from _role(args["self"], Role(positive=True))


def _role(argument: Argument, role: Role) -> Iterator[tuple[str, Role]]:
    if isinstance(argument, Ref):
        yield argument.name, role


def _passed(
    node: Node, function: str, args: Mapping[str, Argument], roles: Mapping[str, Role]
) -> Iterator[tuple[str, Role]]:
    """What is asked of an op's results, as what is asked of its argument."""
    asked = Role()
    for output in node.outputs:
        asked = _merged(asked, roles.get(output, Role()))
    if function in _PASSING:
        source = args["self"] if "self" in args else args["tensors"]
        for part in source if isinstance(source, tuple) else (source,):
            yield from _role(part, asked)
    elif function == "add" and asked.below is not None and isinstance(args["other"], int):
        yield from _role(args["self"], Role(below=asked.below - max(0, args["other"])))


def _merged(one: Role, other: Role) -> Role:
    bounds = [role.below for role in (one, other) if role.below is not None]
    return replace(
        one,
        below=min(bounds) if bounds else None,
        fan_in=max(one.fan_in, other.fan_in),
        gain=one.gain or other.gain,
        positive=one.positive or other.positive,
    )
