"""Matrix products in CuteDSL on a real GPU, in every layout and with every shape of tile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_for, preferred
from scheduler.codegen.cutedsl.gemm_config import PROCESSOR
from scheduler.codegen.cutedsl.source import SOURCE_FILE
from scheduler.outcome import UserError
from scheduler.runtime.cuda import CudaDevice
from scheduler.targets import Target
from tests.support.caches import KEPT
from tests.support.cutedsl_products import PRODUCTS, Product
from tests.unit.matrix.running import run_library

pytestmark = pytest.mark.gpu


def library(product: Product, target: Target) -> Path:
    if target.name != PROCESSOR:
        pytest.skip(f"the kernel is of {PROCESSOR}, and this is {target.name}")
    try:
        toolchain = preferred(find_for(target, Search(cache=KEPT)), target, SOURCE_FILE)
    except UserError as error:
        pytest.skip(str(error))
    kernel = product.caller().kernel
    made = build(kernel.source, kernel.name, target, toolchain, KEPT, source_file=SOURCE_FILE)
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
    return made.directory / "kernel.so"


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_right(name: str, target: Target, device: CudaDevice) -> None:
    """Against NumPy in float64: the error's norm is that of rounding the result once."""
    product = PRODUCTS[name]
    path = library(product, target)
    inputs = product.inputs(np.random.default_rng(3))
    found = run_library(device, path, product.caller(), target.name, inputs, product.bindings)
    for buffer, expected in product.expected(inputs).items():
        assert found[buffer].shape == expected.shape
        error = np.linalg.norm(found[buffer] - expected)
        assert error <= 6e-3 * np.linalg.norm(expected), f"{buffer}: {error}"
