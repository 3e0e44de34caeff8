"""bfloat16 on the host: exact back, nearest and even forth, for every bit pattern."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.ir.encoding import bfloat16_to_float32, float32_to_bfloat16

EVERY = np.arange(1 << 16, dtype=np.uint16)


def test_every_bfloat16_comes_back() -> None:
    values = bfloat16_to_float32(EVERY)
    back = float32_to_bfloat16(values)
    numbers = ~np.isnan(values)
    assert (back[numbers] == EVERY[numbers]).all()
    assert np.isnan(bfloat16_to_float32(back[~numbers])).all()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**127)))
def test_rounds_to_the_nearest_and_ties_to_even(value: float) -> None:
    rounded = float32_to_bfloat16(np.array(value, dtype=np.float32))
    got = float(bfloat16_to_float32(rounded))
    neighbours = np.array([int(rounded) - 1, int(rounded) + 1]) % (1 << 16)
    below, above = bfloat16_to_float32(neighbours.astype(np.uint16)).tolist()
    if not np.isfinite([below, above, got]).all():
        return
    assert abs(got - value) <= min(abs(below - value), abs(above - value))
    if abs(got - value) in (abs(below - value), abs(above - value)):
        assert int(rounded) % 2 == 0


@pytest.mark.parametrize(
    ("value", "bits"),
    [(1.0, 0x3F80), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (-0.0, 0x8000), (3.4e38, 0x7F80)],
)
def test_known_values(value: float, bits: int) -> None:
    assert int(float32_to_bfloat16(np.array([value]))[0]) == bits


def test_shapes_and_strides_are_kept() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6).T[::2]
    bits = float32_to_bfloat16(values)
    assert bits.shape == values.shape
    assert (bfloat16_to_float32(bits) == values).all()
    assert float32_to_bfloat16(np.float32(2.0)).shape == ()
