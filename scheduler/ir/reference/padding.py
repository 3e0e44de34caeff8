"""Reference of reflecting and replicating padding, its gradients, and of unpooling."""

from __future__ import annotations

import math

import numpy as np

from scheduler.ir.reference import indexing
from scheduler.ir.reference.rule import Args, Array, Rule


def pad(mode: str) -> Rule:
    return lambda a: indexing.pad({"self": a["self"], "pad": a["padding"], "mode": mode})


def pad_backward(mode: str) -> Rule:
    """Return the gradient; padding the elements' numbers gives the source of each element."""

    def rule(a: Args) -> Array:
        x, rank = a["self"], len(a["padding"]) // 2
        plane = x.shape[-rank:]
        numbers = np.arange(math.prod(plane)).reshape(plane)
        source = indexing.pad({"self": numbers, "pad": a["padding"], "mode": mode}).ravel()
        grad = a["grad_output"].reshape(-1, source.size)
        made = np.zeros((grad.shape[0], numbers.size))
        for row, own in zip(made, grad, strict=True):
            np.add.at(row, source, own)
        return made.reshape(x.shape)

    return rule


def max_unpool(rank: int) -> Rule:
    def rule(a: Args) -> Array:
        x, places = a["self"], a["indices"]
        size = tuple(int(n) for n in a["output_size"])
        lead = x.shape[:-rank]
        made = np.zeros((math.prod(lead), math.prod(size)), x.dtype)
        rows = np.arange(len(made))[:, None]
        made[rows, places.reshape(len(made), -1)] = x.reshape(len(made), -1)
        return made.reshape(*lead, *size)

    return rule
