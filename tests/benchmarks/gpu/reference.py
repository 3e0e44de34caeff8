"""What a problem's result should be: its exported program, computed in float64 by torch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import tree_map

# It compares what was exported with what runs, and here everything is of another dtype.
_OF_THE_DTYPES = torch.ops.aten._assert_tensor_metadata.default


def in_float64(program: Any, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The first output, where the parameters and inputs lie: every float is a float64 in between,
    whatever dtype the program names."""
    given = iter(inputs)
    signature = program.graph_signature
    values = [
        next(given) if spec.kind is InputKind.USER_INPUT else _known(program, spec.target)
        for spec in signature.input_specs
    ]
    kinds = [spec.kind for spec in signature.output_specs]
    with torch.no_grad():
        outputs = _Wide(program.graph_module).run(*(_wide(value) for value in values))
    found: torch.Tensor = outputs[kinds.index(OutputKind.USER_OUTPUT)]
    return found


def error_of(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest error of a row (along the last axis) over what a row is, both in the Euclidean
    norm: the row itself or, where that is more, the mean of all. NaN where an element is."""
    rows = [
        value.detach().double().reshape(-1, value.shape[-1] if value.ndim else 1)
        for value in (got, expected)
    ]
    away, size = (torch.linalg.vector_norm(one, dim=1) for one in (rows[0] - rows[1], rows[1]))
    usual = size.square().mean().sqrt()
    return float(torch.where(away == 0, away, away / size.maximum(usual)).max())


def bound_of(program: Any, dtype: torch.dtype, roundings: int = 0) -> float:
    """The error that is right: the dtype's epsilon for each time that a float is computed and may
    be rounded, ``roundings`` at least, added as the errors of a random walk are. Sums of f16 and
    bf16 are kept in a wider dtype; f32 and f64 are summed in themselves, so that each term of a
    product is one more time. Integers are right or wrong."""
    if not dtype.is_floating_point:
        return 0.0
    wide = torch.finfo(dtype).bits >= torch.finfo(torch.float32).bits
    computed = sum(
        _terms(node) if wide else 1
        for node in program.graph.nodes
        if node.op == "call_function" and _floats(node) and not _is_view(node)
    )
    return float(torch.finfo(dtype).eps * math.sqrt(max(computed, roundings, 1)))


def _terms(node: Any) -> int:
    """How many products are added for one element of a convolution or a matrix product; 1 of
    anything else."""
    shapes = [
        one.meta["val"].shape
        for one in node.all_input_nodes
        if isinstance(one.meta.get("val"), torch.Tensor)
    ]
    name = node.target.__name__.partition(".")[0]
    if "conv" in name:
        return math.prod(int(size) for size in shapes[1][1:])
    if name in {"linear", "mm", "bmm", "matmul"}:
        return int(shapes[0][-1])
    return int(shapes[1][-1]) if name in {"addmm", "baddbmm"} else 1


class _Wide(torch.fx.Interpreter):
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is _OF_THE_DTYPES:
            return None
        return super().call_function(target, tree_map(_wide, args), tree_map(_wide, kwargs))


def _wide(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def _known(program: Any, name: str) -> torch.Tensor:
    found: torch.Tensor = (
        program.state_dict[name] if name in program.state_dict else program.constants[name]
    )
    return found.detach()


def _floats(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_view(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is None or any(one.alias_info is not None for one in schema.returns)
