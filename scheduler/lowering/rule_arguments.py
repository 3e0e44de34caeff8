"""The arguments of an op for its lowering rule: names, kinds, rejected ones, and their rounding."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

import sympy

from scheduler.errors import UserError
from scheduler.ir import operand_types
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Subgraph
from scheduler.ir.ops import LoweringRule, Param
from scheduler.ir.promotion import Operand
from scheduler.ir.values import Cast
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Scalar, Tensor

#: Arguments that do not change the computed values: memory placement, hints for training.
WITHOUT_EFFECT = frozenset(
    [
        "device",
        "layout",
        "memory_format",
        "pin_memory",
        "non_blocking",
        "copy",
        "cudnn_enable",
        "cudnn_enabled",
        "padding_idx",
        "scale_grad_by_freq",
        "sparse",
        "sparse_grad",
        "implicit",
        "momentum",
        "output_size",
        "generator",
        "out",  # the result is written to it, as by an in-place op
    ]
)


_RUNTIME_NUMBER = "its argument {!r} is a number that is known only at run time"

#: Types that each annotation of a rule accepts. An annotation with any other name accepts all.
_TYPES_OF_ANNOTATION: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "Tensor": (Tensor,),
        "int": (int, sympy.Expr),
        "bool": (int,),
        "float": (int, float, sympy.Expr),
        "Argument": (Tensor, int, float, complex, sympy.Expr),
        "str": (str,),
        "Subgraph": (Subgraph,),
        "None": (type(None),),
    }
)


def accepted_arguments(
    rule: LoweringRule, params: Iterable[Param], arguments: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The arguments that the rule takes, by name.

    Raises ``Unsupported`` if an argument that the rule does not take has an effect and is not at
    its default. Raises ``UserError``, beginning with ``where``, if an argument has a kind that the
    op does not accept.
    """
    accepted_names = _parameters(rule)
    for name, (is_tuple, kinds) in _kinds(rule).items():
        if name not in arguments:
            continue
        parts = arguments[name] if is_tuple else (arguments[name],)
        if Tensor not in kinds and _has_scalar(parts):
            raise Unsupported(_RUNTIME_NUMBER.format(name))
        if not isinstance(parts, tuple) or not all(isinstance(part, kinds) for part in parts):
            raise UserError(f"{where}: its argument {name!r} has the wrong type")
    accepted = {}
    for param in params:
        value = arguments[param.name]
        if accepted_names is not None and param.name not in _kinds(rule) and _has_scalar(value):
            raise Unsupported(_RUNTIME_NUMBER.format(param.name))
        if accepted_names is None or param.name in accepted_names:
            accepted[param.name] = value
        elif param.name not in WITHOUT_EFFECT and value != param.default:
            raise Unsupported(f"argument {param.name}={value} is not supported")
    return accepted


def _has_scalar(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_scalar(part) for part in value)
    return isinstance(value, Scalar)


@cache
def _parameters(rule: LoweringRule) -> frozenset[str] | None:
    """Names of the arguments that a rule takes; None if it takes any."""
    parameters = inspect.signature(rule).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


@cache
def _kinds(rule: LoweringRule) -> Mapping[str, tuple[bool, tuple[type, ...]]]:
    """For each annotated argument: whether it is a tuple, and the accepted types."""
    kinds_of_argument = {}
    for parameter in inspect.signature(rule).parameters.values():
        tuple_match = re.fullmatch(r"tuple\[(.*), \.\.\.\]", str(parameter.annotation))
        names = (tuple_match[1] if tuple_match else str(parameter.annotation)).split(" | ")
        if all(name in _TYPES_OF_ANNOTATION for name in names):
            kinds = tuple(kind for name in names for kind in _TYPES_OF_ANNOTATION[name])
            kinds_of_argument[parameter.name] = (tuple_match is not None, kinds)
    return kinds_of_argument


def round_operands(
    op: str, arguments: Mapping[str, Any], result: DType | None
) -> Mapping[str, Any]:
    """The arguments of the named op, with numbers and tensors rounded to the types that the op
    sees.

    A value that kernels hold wider than its type is rounded unless it was just loaded: a fused
    ``floor(x * 0.3)`` of f16 takes the floor of the f16 product. Casting a load costs nothing.
    """
    if not operand_types.sees_rounded_operands(op):
        return arguments
    tensors = {
        name: (tensor, Operand(tensor.dtype, 2 if tensor.rank else 1))
        for name, tensor in arguments.items()
        if isinstance(tensor, Tensor) and not isinstance(tensor, Scalar)
    }
    return {**arguments, **operand_types.round_operands(op, arguments, tensors, result, _cast)}


def _cast(tensor: Tensor, dtype: DType) -> Tensor:
    """Round to a float type, even if kernels hold it in a wider one."""
    if not dtype.is_float or dtype is DType.F64:
        return tensor
    element_at = tensor.at
    return replace(tensor, at=lambda index: Cast(element_at(index), dtype, decides=True), buffer="")
