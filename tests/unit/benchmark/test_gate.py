"""The correctness gate: a wrong result never passes, a rightly rounded one always does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.benchmark.case import Case
from scheduler.benchmark.gate import check_outputs, compare_output
from scheduler.benchmark.tolerance import Tolerance, kernel_tolerance
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import BoundBuffer, from_storage, to_storage

LOOSE = Tolerance(1e-3, 1e-3)


@given(
    k=st.integers(1, 3000),
    dtype=st.sampled_from([DType.F16, DType.BF16, DType.F32]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sum_in_float32_rounded_once_is_within_the_bound(k: int, dtype: DType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((4, k)), rng.standard_normal((k, 4))
    buffer = BoundBuffer("a", dtype, (4, k), (k, 1))
    a = from_storage(to_storage(a, buffer), buffer)
    buffer = BoundBuffer("b", dtype, (k, 4), (4, 1))
    b = from_storage(to_storage(b, buffer), buffer)
    summed = np.zeros((4, 4), np.float32)
    for i in range(k):  # the worst order: one after the other
        summed += np.outer(a[:, i], b[i]).astype(np.float32)
    out = BoundBuffer("c", dtype, (4, 4), (4, 1))
    got = from_storage(to_storage(summed, out), out)
    found = compare_output(got, a @ b, kernel_tolerance(dtype, DType.F32, k), "c")
    assert found.passed, found


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32])
def test_one_forgotten_product_does_not_pass(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((64, 256)), rng.standard_normal((256, 64))
    found = compare_output(a[:, 1:] @ b[1:], a @ b, kernel_tolerance(dtype, DType.F32, 256), "c")
    assert not found.passed
    assert found.ratio > 10


def test_a_forgotten_element_stays_nan_and_fails() -> None:
    expected = np.ones((4, 4))
    got = expected.copy()
    got[2, 3] = np.nan
    assert not compare_output(got, expected, LOOSE, "c").passed


def test_nan_and_infinity_must_stand_where_the_reference_has_them() -> None:
    expected = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare_output(expected.copy(), expected, LOOSE, "c").passed
    assert not compare_output(
        np.array([np.nan, -np.inf, -np.inf, 1.0]), expected, LOOSE, "c"
    ).passed
    assert not compare_output(np.array([0.0, np.inf, -np.inf, 1.0]), expected, LOOSE, "c").passed


def test_integers_must_be_equal() -> None:
    expected = np.arange(6)
    assert compare_output(expected.copy(), expected, Tolerance(0, 0), "i").passed
    found = compare_output(expected + (expected == 3), expected, Tolerance(0, 0), "i")
    assert not found.passed
    assert "1 of 6" in found.detail


def test_the_worst_element_is_named() -> None:
    expected = np.zeros((3, 5))
    expected[0, 0] = 1.0
    got = expected.copy()
    got[1, 4] = 0.5
    assert "out[1, 4] is 0.5" in compare_output(got, expected, LOOSE, "out").detail


def test_a_right_result_that_wrote_elsewhere_fails() -> None:
    buffer = BoundBuffer("c", DType.F32, (4,), (1,))
    case = Case({"c": buffer}, {}, {"c": np.ones(4)}, {"c": LOOSE}, {})
    storage = {"c": np.ones(4, np.float32)}
    assert check_outputs(case, storage, ()).passed
    found = check_outputs(case, storage, ("a",))
    assert not found.passed
    assert not found.guard_intact
    assert "a" in found.detail


def test_an_empty_output_passes() -> None:
    assert compare_output(np.zeros((0, 4)), np.zeros((0, 4)), LOOSE, "c").passed
