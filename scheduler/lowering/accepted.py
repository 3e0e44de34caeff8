"""Which of an op's arguments its lowering rule looks at, and which it must not be given."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from scheduler.ir.ops import LoweringRule, Param
from scheduler.lowering.errors import Unsupported

#: Arguments that change nothing in what is computed here: where memory lies, hints for training.
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
    ]
)


def accepted_arguments(
    rule: LoweringRule, params: Iterable[Param], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments that the rule takes, by name.

    Raises ``Unsupported`` where one that it does not take is neither without effect nor at its
    default.
    """
    known = _parameters(rule)
    given = {}
    for param in params:
        value = arguments[param.name]
        if known is None or param.name in known:
            given[param.name] = value
        elif param.name not in WITHOUT_EFFECT and value != param.default:
            raise Unsupported(f"argument {param.name}={value} is not covered")
    return given


@cache
def _parameters(rule: LoweringRule) -> frozenset[str] | None:
    """Names of the arguments that a rule looks at; None if it takes any."""
    parameters = inspect.signature(rule).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)
