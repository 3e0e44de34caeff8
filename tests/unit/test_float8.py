"""The floats of 8 bits on the host: every code, and roundings, as torch has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import from_bits, round_to_dtype, to_bits

torch = pytest.importorskip("torch")
FLOATS = {d: getattr(torch, d.torch.removeprefix("torch.")) for d in DType if d.is_float8}
CODES = np.arange(256, dtype=np.uint8)
EACH = pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.label)


def numbers() -> Any:
    """What conversions may get wrong: each number of each format, what lies halfway between two
    of them and beside that, the edges of float32, and random ones of all magnitudes."""
    known = np.concatenate([from_bits(CODES, dtype) for dtype in FLOATS]).astype(np.float64)
    known = np.unique(known[np.isfinite(known)])
    halfway = (known[1:] + known[:-1]) / 2
    near = np.concatenate([known, halfway, -known]).astype(np.float32)
    rng = np.random.default_rng(5)
    random = rng.standard_normal(20000) * 2.0 ** rng.integers(-140, 127, 20000)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 464.0, 480.0, 61440.0, 3e38, 1e-45]
    beside = [np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    with np.errstate(over="ignore"):
        return np.concatenate([near, *beside, random.astype(np.float32), np.float32(edges)])


@EACH
def test_every_code_means_what_torch_says(dtype: DType) -> None:
    expected = torch.from_numpy(CODES.copy()).view(FLOATS[dtype]).float().numpy()
    np.testing.assert_array_equal(from_bits(CODES, dtype), expected)


@EACH
def test_roundings_are_torchs(dtype: DType) -> None:
    values = numbers()
    expected = torch.from_numpy(values).to(FLOATS[dtype]).view(torch.uint8).numpy()
    np.testing.assert_array_equal(to_bits(values, dtype), expected)


@EACH
def test_figures_of_the_format(dtype: DType) -> None:
    finite = from_bits(CODES, dtype)
    finite = finite[np.isfinite(finite)]
    assert dtype.largest == finite.max() == torch.finfo(FLOATS[dtype]).max
    one = finite[finite > 1].min() - 1  # from 1 to the next number
    assert dtype.eps == one / 2
    assert dtype.torch == str(FLOATS[dtype])
    assert round_to_dtype(np.float64(1.0), dtype).shape == ()
