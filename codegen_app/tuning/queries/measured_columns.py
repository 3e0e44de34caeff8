"""Columns shared by all tables with times or builds, given a function from a row to its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from codegen_app.kernels.queries.resource_use import ResourceUse
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.web.tables import Column, Kind
from scheduler.benchmark.metrics import METRICS, TIME
from scheduler.codegen.kernel import ConfigValue
from scheduler.stats.intervals import MIN_INTERVAL_SAMPLES

_INTERVAL = f"95%; the range if n < {MIN_INTERVAL_SAMPLES}; sorted by the fast end"

Row = TypeVar("Row")


def time_columns(measured: Callable[[Row], MeasuredRow | None]) -> tuple[Column[Row], ...]:
    """The median, its bounds, and its number of samples."""

    def time(name: str) -> Callable[[Row], float | None]:
        def value(row: Row) -> float | None:
            ns = getattr(measured(row), name, None)
            return None if ns is None else ns / 1000

        return value

    def samples(row: Row) -> int | None:
        return getattr(measured(row), "n", None) or None

    return (
        Column("median", "Median", time("median_ns"), Kind.TIME, "µs"),
        Column("low", "Interval", time("low_ns"), Kind.TIME, "µs", _INTERVAL),
        Column(
            "high", "Slow end", time("high_ns"), Kind.TIME, "µs", "of the interval", shown=False
        ),
        Column("n", "n", samples, Kind.WHOLE, note="samples"),
    )


def metric_columns(measured: Callable[[Row], MeasuredRow | None]) -> tuple[Column[Row], ...]:
    """The other metrics, in the order in which pages show them."""

    def value(name: str) -> Callable[[Row], float | None]:
        def read(row: Row) -> float | None:
            result = measured(row)
            metric = result.metrics.get(name) if result is not None else None
            return None if metric is None else metric.value

        return read

    return tuple(
        Column(name, row.title, value(name), Kind.RATIO, row.unit, row.note, sparse=True)
        for name, row in METRICS.items()
        if name != TIME
    )


def resource_columns(resources: Callable[[Row], ResourceUse | None]) -> tuple[Column[Row], ...]:
    """Registers and occupancy, if a row has them; waves and their limiter are optional columns."""

    def value(name: str) -> Callable[[Row], Any]:
        return lambda row: getattr(resources(row), name, None)

    def target(row: Row) -> str:
        use = resources(row)
        return "" if use is None else f"on {use.target}, limited by {use.limiter}"

    def limiter(row: Row) -> str | None:
        return getattr(resources(row), "limiter", None) or None

    return (
        Column(
            "registers",
            "Registers",
            value("registers"),
            Kind.WHOLE,
            note="per thread",
            hover=target,
            sparse=True,
        ),
        Column(
            "occupancy",
            "Occupancy",
            value("occupancy_percent"),
            Kind.SHARE,
            "%",
            "resident waves per SIMD, of the maximum",
            hover=target,
            after=lambda row: getattr(resources(row), "words", ""),
            sparse=True,
        ),
        Column("waves", "Waves", value("waves"), Kind.WHOLE, "per SIMD", shown=False),
        Column("limit", "Limiter", limiter, shown=False),
    )


def parameter_column(
    key: str, name: str, config: Callable[[Row], Mapping[str, ConfigValue]], rows: Sequence[Row]
) -> Column[Row]:
    """A column for a configuration parameter: numeric if all rows that have it hold a number, else
    text."""
    values = [config(row)[name] for row in rows if name in config(row)]
    is_whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    convert = float if is_whole else str

    def cell(row: Row) -> float | str | None:
        value = config(row).get(name)
        return None if value is None else convert(value)

    return Column(key, name, cell, Kind.WHOLE if is_whole else Kind.CODE)


def unique_key(name: str, keys: Collection[str]) -> str:
    """Return the key of a parameter's column in addresses, distinct from these keys."""
    return f"config.{name}" if name in keys else name


def format_pairs(values: Mapping[str, object]) -> str | None:
    """Format values as ``block_m=128 block_n=64``; None if there are none."""
    return " ".join(f"{key}={value}" for key, value in values.items()) or None
