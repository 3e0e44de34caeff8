"""Metrics: the time and what is derived from it, each with an interval that holds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.benchmark.metrics import (
    METRICS,
    MetricInputs,
    MetricRow,
    compute_metrics,
    reading_figure,
)

TIMES = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=30)


@given(samples=TIMES, moved=st.integers(0, 2**40))
def test_every_interval_holds_its_figure(samples: list[float], moved: int) -> None:
    found = compute_metrics(MetricInputs(samples, moved))
    assert next(iter(found)) == "time"
    assert ("bandwidth" in found) == (moved > 0)
    for metric in found.values():
        assert metric.low <= metric.value <= metric.high
        assert metric.n == len(samples)


def test_bandwidth_is_bytes_over_the_time() -> None:
    found = compute_metrics(MetricInputs([1000.0, 1000.0, 1000.0], moved_bytes=2 * 10**6))
    assert found["bandwidth"].value == pytest.approx(2000.0)  # 2 MB in a microsecond: 2 TB/s
    assert found["bandwidth"].unit == "GB/s"


def test_what_the_device_reads_is_a_metric_by_a_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    row = MetricRow(
        "Clock", "MHz", "of the device, read with each sample", reading_figure("clock_mhz")
    )
    monkeypatch.setitem(METRICS, "clock", row)  # type: ignore[misc]
    found = compute_metrics(
        MetricInputs([10.0, 11.0, 12.0], readings={"clock_mhz": [2000.0, 2100.0, 2050.0]})
    )
    assert (found["clock"].value, found["clock"].unit, found["clock"].n) == (2050.0, "MHz", 3)
    assert "clock" not in compute_metrics(MetricInputs([10.0]))
