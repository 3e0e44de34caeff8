"""The benchmark of bounds: what it fails for, and that bounds of a few kernels are not too wide."""

from __future__ import annotations

import sys

import pytest

from scheduler.benchmark.measurement import Check
from tests.benchmarks.bounds import Measured, main, report


def measured(ratio: float, *, passed: bool = True) -> Measured:
    return Measured("product", "one", Check(passed, ratio, 1.0, ratio, True), passed)


def test_a_wide_bound_and_a_wrong_kernel_fail() -> None:
    assert report({"product": [measured(0.02), measured(0.05), measured(0.5)]}) == 0
    assert report({"product": [measured(0.02), measured(0.03), measured(0.5)]}) == 1
    assert report({"product": [measured(0.5), measured(2.0, passed=False)]}) == 1
    assert report({}) == 1, "nothing was measured"


def test_kernels_without_an_error_say_nothing() -> None:
    assert report({"product": [measured(0.0), measured(0.0), measured(0.2)]}) == 0


@pytest.mark.full
@pytest.mark.parametrize("only", ["scaled by lines", "reduction, rows", "scan, any rows"])
def test_bounds_are_not_too_wide(only: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bounds", "--only", only])
    assert main() == 0
