"""Attention in CuteDSL on a real GPU: every form, at lengths that are no multiples of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_for, preferred
from scheduler.codegen.cutedsl.source import SOURCE_FILE
from scheduler.ir.dtypes import DType
from scheduler.outcome import UserError
from scheduler.runtime.cuda import CudaDevice
from scheduler.targets import Target
from tests.support.caches import KEPT
from tests.support.cutedsl_attention import PROBLEMS
from tests.unit.matrix.running import run_library

pytestmark = pytest.mark.gpu
# Of a weighted mean of unit normal values: the weights are rounded to the type before.
BOUND = {DType.F16: 2e-3, DType.BF16: 2e-2}


@pytest.mark.parametrize("name", PROBLEMS)
def test_attention_is_right(name: str, target: Target, device: CudaDevice) -> None:
    """Against NumPy in float64."""
    if target.name != "sm_90":
        pytest.skip(f"the kernel is of sm_90, and this is {target.name}")
    try:
        toolchain = preferred(find_for(target, Search(cache=KEPT)), target, SOURCE_FILE)
    except UserError as error:
        pytest.skip(str(error))
    problem = PROBLEMS[name]
    caller, _ = problem.made()
    kernel = caller.kernel
    made = build(kernel.source, kernel.name, target, toolchain, KEPT, source_file=SOURCE_FILE)
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
    for length in problem.lengths:
        inputs = problem.inputs(length, np.random.default_rng(length))
        path = made.directory / "kernel.so"
        found = run_library(device, path, caller, target.name, inputs, {"s27": length})["o"]
        expected = problem.expected(inputs, length)
        assert found.shape == expected.shape
        error = np.abs(found - expected) / (1 + np.abs(expected))
        assert error.max(initial=0) <= BOUND[problem.dtype], f"{length}: {error.max()}"
