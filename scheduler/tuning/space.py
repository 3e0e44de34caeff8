"""The configurations that a search may try, and their coordinates.

A space is a list of legal configurations, not a product of ranges: the rules that drop the others
were applied (and recorded) before.
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
#: The parameter of a search among several templates that names them.
TEMPLATE = "template"

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """Legal configurations. Raises ``ValueError`` when empty.

    A parameter that only some of them name is 0 for the others: left to the kernel.
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
        """One row a configuration, columns in [0, 1]; parameters that never vary have none.

        Positive numbers go by their logarithm (tiles and block sizes double), other numbers by
        their value, and each value of a text parameter is a column of its own. Whole numbers of
        which some are no powers of two have a second column: how far from one they are (the
        logarithm of the odd part), since waves, banks and cache lines come in powers of two.
        """
        columns: list[Floats] = []
        for name in self.parameters:
            columns += _columns(self._values(name))
        if not columns:
            return np.zeros((len(self.configs), 1))
        return np.stack(columns, axis=1)

    @cached_property
    def levels(self) -> npt.NDArray[np.int64]:
        """One row a configuration: for each parameter the place of its value among all values."""
        columns = []
        for name in self.parameters:
            values = self._values(name)
            order = {value: place for place, value in enumerate(sorted(set(values), key=_order))}
            columns.append([order[value] for value in values])
        return np.array(columns, dtype=np.int64).T

    def neighbours(self, index: int, reach: int = 1) -> npt.NDArray[np.int64]:
        """Configurations that differ in one parameter, by at most ``reach`` of its values."""
        distance = np.abs(self.levels - self.levels[index])
        one_changed = np.count_nonzero(distance, axis=1) == 1
        return np.flatnonzero(one_changed & (distance.max(axis=1) <= reach))


def _columns(values: Sequence[Value]) -> list[Floats]:
    distinct = sorted(set(values), key=_order)
    if len(distinct) < 2:
        return []
    if any(isinstance(value, str) for value in distinct):
        chosen = distinct if len(distinct) > 2 else distinct[1:]
        return [np.array([float(value == one) for value in values]) for one in chosen]
    column = np.array([float(value) for value in values])
    columns = [column]
    if column.min() > 0 and len(distinct) > 2:
        columns = [np.log2(column)]
        if all(float(value).is_integer() for value in values):
            columns.append(np.log2([_odd_part(int(value)) for value in values]))
    spans = [(one, one.min(), one.max()) for one in columns]
    return [(one - low) / (high - low) for one, low, high in spans if high > low]


def _odd_part(value: int) -> int:
    return value // (value & -value)


def _order(value: Value) -> tuple[bool, float, str]:
    """Numbers by size, then text: any two values can be compared."""
    if isinstance(value, str):
        return True, 0.0, value
    return False, float(value), ""
