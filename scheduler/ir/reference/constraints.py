"""Constraints of ops on their arguments' elements, for the generation of random values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from scheduler.ir.graph import Argument, Graph, Ref
from scheduler.ir.index.functions import evaluate


@dataclass(frozen=True)
class Constraint:
    """Constraints on a value's elements.

    ``below``: integers are indices smaller than it. ``fan_in``: number of summed elements.
    ``gain``: a factor near 1. ``positive``: greater than 0. ``divides``: integers other than 0.
    """

    below: int | None = None
    fan_in: int = 0
    gain: bool = False
    positive: bool = False
    divides: bool = False

    def merge(self, other: Constraint) -> Constraint:
        bounds = [role.below for role in (self, other) if role.below is not None]
        return replace(
            self,
            below=min(bounds) if bounds else None,
            fan_in=max(self.fan_in, other.fan_in),
            gain=self.gain or other.gain,
            positive=self.positive or other.positive,
            divides=self.divides or other.divides,
        )


class Sizes:
    """Sizes of a graph's tensors at these bindings."""

    def __init__(self, graph: Graph, bindings: Mapping[str, int]) -> None:
        self._graph = graph
        self._bindings = dict(bindings)

    def numel(self, argument: Argument, position: slice) -> int | None:
        """Return the product of some of a tensor's sizes; None if no tensor or data-dependent."""
        meta = self._graph.tensors.get(argument.name) if isinstance(argument, Ref) else None
        if meta is None:
            return None
        try:
            return math.prod(evaluate(size, self._bindings) for size in meta.size[position])
        except KeyError:
            return None

    def along(self, argument: Argument, dim: Any) -> int | None:
        if not isinstance(dim, int):
            return None
        return self.numel(argument, slice(dim, dim + 1 or None))


Required: TypeAlias = Iterator[tuple[Argument, Constraint]]
#: Maps a node's arguments by name to the constraints of some of them.
Requirements: TypeAlias = Callable[[Mapping[str, Argument], Sizes], Required]


def row_indices(indices: str, table: str) -> Requirements:
    """``indices`` are row numbers of the table."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[indices], Constraint(below=sizes.along(args[table], 0))

    return requires


def indices_below(indices: str, count: str) -> Requirements:
    """``indices`` are below the argument ``count``."""

    def requires(args: Mapping[str, Argument], _: Sizes) -> Required:
        number = args[count]
        yield args[indices], Constraint(below=number if isinstance(number, int) else None)

    return requires


def flat_indices(indices: str) -> Requirements:
    """``indices`` are positions in flattened ``self``."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[indices], Constraint(below=sizes.numel(args["self"], slice(None)))

    return requires


def dim_indices(indices: str) -> Requirements:
    """``indices`` are positions along the dimension ``dim`` of ``self``."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        if args["dim"] is not None:
            yield args[indices], Constraint(below=sizes.along(args["self"], args["dim"]))

    return requires


def per_dim_indices(args: Mapping[str, Argument], sizes: Sizes) -> Required:
    """``indices`` has positions along each dimension of ``self``, or None for all."""
    indices = args["indices"]
    for axis, index in enumerate(indices if isinstance(indices, tuple) else ()):
        yield index, Constraint(below=sizes.along(args["self"], axis))


def plane_indices(rank: int) -> Requirements:
    """``indices`` are flat positions in the last ``rank`` dimensions of ``self``."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args["indices"], Constraint(below=sizes.numel(args["self"], slice(-rank, None)))

    return requires


def class_indices(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``self`` holds class numbers."""
    count = args["num_classes"]
    if isinstance(count, int):
        yield args["self"], Constraint(below=count if count > 0 else None)


def class_targets(args: Mapping[str, Argument], sizes: Sizes) -> Required:
    """``target`` holds class numbers along the scores' dimension 1, or their only one."""
    classes = sizes.along(args["self"], 1)
    yield args["target"], Constraint(below=classes or sizes.along(args["self"], 0))


def weight_fan_in(matrix: str, first: int, last: int | None = None) -> Requirements:
    """A matrix whose dimensions from ``first`` to before ``last`` are summed over."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[matrix], Constraint(fan_in=sizes.numel(args[matrix], slice(first, last)) or 0)

    return requires


def norm_parameters(args: Mapping[str, Argument], _: Sizes) -> Required:
    """A normalisation's factor and running variance."""
    yield args["weight"], Constraint(gain=True)
    yield args.get("running_var"), Constraint(positive=True)


def positive(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``self`` is greater than 0."""
    yield args["self"], Constraint(positive=True)


def divisor(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``other`` is a divisor: torch raises an error for an integer 0."""
    yield args["other"], Constraint(divides=True)
