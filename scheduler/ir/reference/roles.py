"""What an op asks of its arguments' elements, as far as random values for them must respect it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from scheduler.ir.graph import Argument, Graph, Ref
from scheduler.ir.index.functions import evaluate


@dataclass(frozen=True)
class Role:
    """What is asked of a value's elements.

    ``below``: integers are indices smaller than it. ``fan_in``: how many of them are summed.
    ``gain``: a factor near 1. ``positive``: greater than 0. ``divides``: integers other than 0.
    """

    below: int | None = None
    fan_in: int = 0
    gain: bool = False
    positive: bool = False
    divides: bool = False

    def merged(self, other: Role) -> Role:
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
        if not isinstance(dim, int):
            return None
        return self.of(argument, slice(dim, dim + 1 or None))


Required: TypeAlias = Iterator[tuple[Argument, Role]]
#: From a node's arguments by name to the roles of some of them.
Requirements: TypeAlias = Callable[[Mapping[str, Argument], Sizes], Required]


def rows_of(indices: str, table: str) -> Requirements:
    """``indices`` number the table's rows."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[indices], Role(below=sizes.along(args[table], 0))

    return requires


def rows_below(indices: str, count: str) -> Requirements:
    """``indices`` number as many rows as the argument ``count`` says."""

    def requires(args: Mapping[str, Argument], _: Sizes) -> Required:
        number = args[count]
        yield args[indices], Role(below=number if isinstance(number, int) else None)

    return requires


def places_of_all(indices: str) -> Requirements:
    """``indices`` are places in ``self`` as one line."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[indices], Role(below=sizes.of(args["self"], slice(None)))

    return requires


def places_along_dim(indices: str) -> Requirements:
    """``indices`` are places along the dimension ``dim`` of ``self``."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        if args["dim"] is not None:
            yield args[indices], Role(below=sizes.along(args["self"], args["dim"]))

    return requires


def places_by_dimension(args: Mapping[str, Argument], sizes: Sizes) -> Required:
    """``indices`` has places along each dimension of ``self``, or None for a whole one."""
    indices = args["indices"]
    for axis, index in enumerate(indices if isinstance(indices, tuple) else ()):
        yield index, Role(below=sizes.along(args["self"], axis))


def places_in_planes(rank: int) -> Requirements:
    """``indices`` are flat places in the last ``rank`` dimensions of ``self``."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args["indices"], Role(below=sizes.of(args["self"], slice(-rank, None)))

    return requires


def classes(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``self`` numbers the classes."""
    count = args["num_classes"]
    if isinstance(count, int):
        yield args["self"], Role(below=count if count > 0 else None)


def classes_of_scores(args: Mapping[str, Argument], sizes: Sizes) -> Required:
    """``target`` numbers the classes along the scores' dimension 1, or their only one."""
    classes = sizes.along(args["self"], 1)
    yield args["target"], Role(below=classes or sizes.along(args["self"], 0))


def summed(matrix: str, first: int, last: int | None = None) -> Requirements:
    """A matrix whose dimensions from ``first`` to before ``last`` are summed over."""

    def requires(args: Mapping[str, Argument], sizes: Sizes) -> Required:
        yield args[matrix], Role(fan_in=sizes.of(args[matrix], slice(first, last)) or 0)

    return requires


def gain_and_variance(args: Mapping[str, Argument], _: Sizes) -> Required:
    """A normalisation's factor and running variance."""
    yield args["weight"], Role(gain=True)
    yield args.get("running_var"), Role(positive=True)


def positive(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``self`` is greater than 0."""
    yield args["self"], Role(positive=True)


def divisor(args: Mapping[str, Argument], _: Sizes) -> Required:
    """``other`` is divided by: torch raises an error for an integer 0."""
    yield args["other"], Role(divides=True)
