"""A shape's problem on a device: inputs that are drawn there, and what should come of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from scheduler.fusion.nodes import Schedule
from scheduler.ir.graph import Graph, Ref
from tests.benchmarks.gpu.problem import Loaded
from tests.benchmarks.gpu.reference import error_of


def drawn(plan: Schedule, device: str) -> Loaded:
    """Inputs of a standard normal distribution, as they lie in the plan; it has no parameters."""
    graph = plan.lowered.graph
    inputs = tuple(_tensor(graph, value.name, device) for value in graph.inputs)
    return Loaded(None, inputs, SimpleNamespace(state_dict={}, constants={}))


def _tensor(graph: Graph, name: str, device: str) -> torch.Tensor:
    meta = graph.tensors[name]
    size, stride = ([int(one) for one in each] for each in (meta.size, meta.stride))
    dtype = getattr(torch, meta.dtype.torch.removeprefix("torch."))
    return torch.randn(math.prod(size), dtype=dtype, device=device).as_strided(size, stride)


def exact(plan: Schedule, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The first output by torch's own ops in float64, where the inputs lie."""
    graph = plan.lowered.graph
    names = [value.name for value in graph.inputs]
    values: dict[str, Any] = dict(zip(names, (one.double() for one in inputs), strict=True))

    def known(argument: Any) -> Any:
        return values[argument.name] if isinstance(argument, Ref) else argument

    for node in graph.nodes:
        space, op, overload = node.target.split(".")
        function = getattr(getattr(getattr(torch.ops, space), op), overload)
        args, kwargs = tree_map(known, (node.args, dict(node.kwargs)))
        values[node.outputs[0]] = function(*args, **kwargs)
    found: torch.Tensor = values[graph.outputs[0]]
    return found


def bound_of(expected: torch.Tensor, dtype: torch.dtype) -> float:
    """The error that is right (``reference.error_of``): what rounding the exact result makes, which
    is more than epsilon where it is subnormal, and an epsilon of what is computed before."""
    return error_of(expected.to(dtype), expected) + float(torch.finfo(dtype).eps)
