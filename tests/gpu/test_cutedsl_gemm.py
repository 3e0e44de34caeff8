"""Matrix products in CuteDSL on a real GPU, in every layout and with every shape of tile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler.runtime.cuda import CudaDevice
from scheduler.targets import Target, hopper
from tests.support.cutedsl_products import PRODUCTS
from tests.unit.matrix.running import run_library

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_right(
    name: str, target: Target, device: CudaDevice, cutedsl_library: Callable[[str, str], Path]
) -> None:
    """Against NumPy in float64: the error's norm is that of rounding the result once."""
    processor = hopper.GPUS[0].processor
    if target.name != processor:
        pytest.skip(f"the kernel is of {processor}, and this is {target.name}")
    product = PRODUCTS[name]
    kernel = product.caller().kernel
    path = cutedsl_library(kernel.source, kernel.name)
    inputs = product.inputs(np.random.default_rng(3))
    found = run_library(device, path, product.caller(), target.name, inputs, product.bindings)
    for buffer, expected in product.expected(inputs).items():
        assert found[buffer].shape == expected.shape
        error = np.linalg.norm(found[buffer] - expected)
        assert error <= 6e-3 * np.linalg.norm(expected), f"{buffer}: {error}"
