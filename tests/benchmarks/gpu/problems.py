"""The problems that are timed on a GPU, with the bars that Kiln's kernels are held to."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.gpu.problem import Problem
from tests.benchmarks.gpu.products import convolutions, products
from tests.benchmarks.gpu.rows import pointwise_and_rows, reductions
from tests.benchmarks.gpu.whole import wholes


def problems(only: Sequence[str] = ()) -> tuple[Problem, ...]:
    """In the order in which they are shown; ``only`` those whose names have one of the texts."""
    every = (*products(), *pointwise_and_rows(), *reductions(), *convolutions(), *wholes())
    return tuple(one for one in every if not only or any(text in one.name for text in only))


def named(name: str) -> Problem:
    """The problem called so."""
    return next(one for one in problems() if one.name == name)
