"""The functions of kiln/math.h on an NVIDIA GPU, over the whole range: the same text as on the CPU,
but another compiler's roundings and another machine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduler.build.model import Build
from scheduler.runtime.cuda import CudaDevice
from tests.gpu.running import call
from tests.support.math_accuracy import NAMES, Array, Evaluate, assert_as_stated, math_source

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def evaluate(device: CudaDevice, compiled: Callable[[str, str], Build]) -> Evaluate:
    library = compiled(math_source(), "evaluate").directory / "kernel.so"

    def on_device(name: str, x: Array, w: Array) -> Array:
        y = np.empty_like(x)
        wide = int(x.dtype == np.float64)
        call(device, library, "evaluate", x, w, y, len(x), NAMES.index(name), wide)
        return y

    return on_device


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_stated_accuracy_holds(
    name: str, dtype: type[np.floating[Any]], evaluate: Evaluate
) -> None:
    assert_as_stated(name, dtype, evaluate)
