"""Which rule lowers which op: the families' tables as one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from scheduler.lowering import (
    activations,
    attention,
    convolution,
    creation,
    indexing,
    joining,
    matmul,
    normalization,
    pointwise,
    pooling,
    reductions,
    softmax,
    views,
)

Rule = Callable[..., Any]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **views.TABLE,
        **creation.TABLE,
        **pointwise.TABLE,
        **activations.TABLE,
        **indexing.TABLE,
        **joining.TABLE,
        **reductions.TABLE,
        **softmax.TABLE,
        **normalization.TABLE,
        **pooling.TABLE,
        **matmul.TABLE,
        **convolution.TABLE,
        **attention.TABLE,
    }
)

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


@cache
def accepted(rule: Rule) -> frozenset[str] | None:
    """Names of the arguments that a rule looks at; None if it takes any."""
    parameters = inspect.signature(rule).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)
