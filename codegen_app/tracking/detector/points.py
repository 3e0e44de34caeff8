"""Points of a history as columns: most are only computed with, and never become objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""PostgreSQL's epoch: its binary timestamps are microseconds since then."""

_MICROSECOND = timedelta(microseconds=1)
_HOUR = timedelta(hours=1) // _MICROSECOND
# A one-dimensional array: its header, then each value after its length (array_send in PostgreSQL's
# src/backend/utils/adt/arrayfuncs.c).
_ARRAY_HEADER = 20
_INT_ELEMENT = np.dtype([("length", ">i4"), ("value", ">i4")])
_BIGINT_ELEMENT = np.dtype([("length", ">i4"), ("value", ">i8")])
_FLOAT_ELEMENT = np.dtype([("length", ">i4"), ("value", ">f8")])


class Point(NamedTuple):
    """A point as the detector sees it: in order of history, runs of one revision as measured."""

    at: datetime
    measured_at: datetime
    pk: int
    value: float
    revision: int
    conditions: int


@dataclass(frozen=True)
class PointColumns:
    """Points in the order of ``Point``; timestamps in microseconds since PostgreSQL's epoch."""

    at: Ints
    measured_at: Ints
    pks: Ints
    values: Floats
    revisions: Ints
    conditions: Ints

    def __len__(self) -> int:
        return self.pks.size

    def __getitem__(self, at: int) -> Point:
        return Point(
            to_datetime(self.at[at]),
            to_datetime(self.measured_at[at]),
            int(self.pks[at]),
            float(self.values[at]),
            int(self.revisions[at]),
            int(self.conditions[at]),
        )

    @property
    def last_measured_at(self) -> datetime:
        """Return the latest time of measurement."""
        return to_datetime(self.measured_at.max())

    @property
    def hours(self) -> list[int]:
        """Return the hours with measurements, in order, counted from an arbitrary hour."""
        hours: list[int] = np.unique(self.measured_at // _HOUR).tolist()
        return hours

    def index_from(self, since: datetime) -> int:
        """Return the first index at or after a time."""
        return int(np.searchsorted(self.at, (since - _EPOCH) // _MICROSECOND))

    def index_of(self, pk: int) -> int | None:
        """Return a point's index, if it is here."""
        indices = np.flatnonzero(self.pks == pk)
        return int(indices[0]) if indices.size else None


def to_datetime(microseconds: np.int64) -> datetime:
    """Return a column's timestamp as a datetime."""
    return _EPOCH + int(microseconds) * _MICROSECOND


def decode_points(columns: Sequence[bytes | None]) -> PointColumns:
    """Return the points of the arrays from ``register_array_loaders``, in ``Point``'s order,
    sorted."""
    at, measured_at, pks, values, revisions, conditions = columns
    moments, measured, keys = _decode_ints(at), _decode_ints(measured_at), _decode_ints(pks)
    order = np.lexsort((keys, measured, moments))
    return PointColumns(
        at=moments[order],
        measured_at=measured[order],
        pks=keys[order],
        values=_decode_column(values, _FLOAT_ELEMENT)[order].astype(np.float64),
        revisions=_decode_ints(revisions, _INT_ELEMENT)[order],
        conditions=_decode_ints(conditions, _INT_ELEMENT)[order],
    )


def _decode_ints(array: bytes | None, dtype: np.dtype[np.void] = _BIGINT_ELEMENT) -> Ints:
    return _decode_column(array, dtype).astype(np.int64)


def _decode_column(array: bytes | None, dtype: np.dtype[np.void]) -> npt.NDArray[Any]:
    """Return an array's column; null is the array of no rows."""
    column: npt.NDArray[Any] = np.frombuffer(
        array or bytes(_ARRAY_HEADER), dtype, offset=_ARRAY_HEADER
    )["value"]
    return column


def register_array_loaders(adapters: AdaptersMap) -> None:
    """Load binary arrays of numbers and timestamps for ``decode_points``: an object per value takes
    more time than the detector."""
    for name in ("int4", "int8", "float8", "timestamptz"):
        adapters.register_loader(adapters.types[name].array_oid, _Bytes)


class _Bytes(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)
