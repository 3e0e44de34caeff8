"""Attention in CuteDSL on a real GPU: every form, at lengths that are no multiples of tiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler.ir.dtypes import DType
from scheduler.runtime.cuda import CudaDevice
from scheduler.targets import Target
from tests.support.cutedsl_attention import PROBLEMS
from tests.unit.matrix.running import run_library

pytestmark = pytest.mark.gpu
# Of a weighted mean of unit normal values: the weights are rounded to the type before.
BOUND = {DType.F16: 2e-3, DType.BF16: 2e-2}


@pytest.mark.parametrize("name", PROBLEMS)
def test_attention_is_right(
    name: str, target: Target, device: CudaDevice, cutedsl_library: Callable[[str, str], Path]
) -> None:
    """Against NumPy in float64."""
    if target.name != "sm_90":
        pytest.skip(f"the kernel is of sm_90, and this is {target.name}")
    problem = PROBLEMS[name]
    caller, _ = problem.made()
    kernel = caller.kernel
    path = cutedsl_library(kernel.source, kernel.name)
    for length in problem.lengths:
        inputs = problem.inputs(length, np.random.default_rng(length))
        found = run_library(device, path, caller, target.name, inputs, {"s27": length})["o"]
        expected = problem.expected(inputs, length)
        assert found.shape == expected.shape
        assert (np.isnan(found) == np.isnan(expected)).all()
        error = np.nan_to_num(np.abs(found - expected) / (1 + np.abs(expected)))
        assert error.max(initial=0) <= BOUND[problem.dtype], f"{length}: {error.max()}"
