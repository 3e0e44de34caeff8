"""The configurations that a search may try, and their coordinates.

A space is a list of legal configurations, not a product of ranges: the rules already dropped (and
recorded) the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Value: TypeAlias = int | float | str | bool
Config: TypeAlias = Mapping[str, Value]
#: In a search among several templates, the parameter that names the template.
TEMPLATE = "template"

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """Legal configurations. Raises ``ValueError`` when empty.

    A parameter that a configuration does not name is 0 in it: left to the kernel.
    """

    configs: tuple[Config, ...]

    def __post_init__(self) -> None:
        if not self.configs:
            raise ValueError("a space needs at least one configuration")

    def __len__(self) -> int:
        return len(self.configs)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters, in the configurations' order."""
        return tuple(dict.fromkeys(name for config in self.configs for name in config))

    def _values(self, name: str) -> list[Value]:
        return [config.get(name, 0) for config in self.configs]

    @cached_property
    def coordinates(self) -> Floats:
        """One row per configuration, columns in [0, 1]; parameters that never vary have none.

        Positive numbers use their logarithm (tiles and block sizes double), other numbers their
        value; each value of a text parameter has its own column. Whole numbers that are not all
        powers of two have a second column: the distance from one (the logarithm of the odd part),
        since waves, banks and cache lines come in powers of two.
        """
        columns: list[Floats] = []
        for name in self.parameters:
            columns += _columns(self._values(name))
        if not columns:
            return np.zeros((len(self.configs), 1))
        return np.stack(columns, axis=1)

    @cached_property
    def levels(self) -> npt.NDArray[np.int64]:
        """One row per configuration: for each parameter, the rank of its value among all values."""
        columns = []
        for name in self.parameters:
            values = self._values(name)
            order = {value: rank for rank, value in enumerate(sorted(set(values), key=_sort_key))}
            columns.append([order[value] for value in values])
        return np.array(columns, dtype=np.int64).T

    def neighbours(self, index: int, reach: int = 1) -> npt.NDArray[np.int64]:
        """Return configurations that differ in one parameter, by at most ``reach`` of its
        values."""
        distance = np.abs(self.levels - self.levels[index])
        one_changed = np.count_nonzero(distance, axis=1) == 1
        return np.flatnonzero(one_changed & (distance.max(axis=1) <= reach))


def _columns(values: Sequence[Value]) -> list[Floats]:
    distinct = sorted(set(values), key=_sort_key)
    if len(distinct) < 2:
        return []
    if any(isinstance(value, str) for value in distinct):
        shown_values = distinct if len(distinct) > 2 else distinct[1:]
        return [np.array([float(value == text) for value in values]) for text in shown_values]
    column = np.array([float(value) for value in values])
    columns = [column]
    if column.min() > 0 and len(distinct) > 2:
        columns = [np.log2(column)]
        if all(float(value).is_integer() for value in values):
            numbers = np.array([int(value) for value in values])
            columns.append(np.log2(numbers // (numbers & -numbers)))  # the odd part
    spans = [(column_values, column_values.min(), column_values.max()) for column_values in columns]
    return [
        (column_values - low) / (high - low) for column_values, low, high in spans if high > low
    ]


def _sort_key(parameter_value: Value) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then text, so that any two values can be compared."""
    if isinstance(parameter_value, str):
        return True, 0.0, parameter_value
    return False, float(parameter_value), ""
