"""kiln/math.h keeps the accuracy that it states, over the whole range, for float and double.

It is the same text on a GPU; only fused and plain operations of IEEE arithmetic are in it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.ir.pointwise import FUNCTIONS
from tests.support.math_accuracy import (
    NAMES,
    STATED,
    UNARY,
    Array,
    Evaluate,
    assert_as_stated,
    math_source,
)


@pytest.fixture(scope="module")
def evaluate(toolchain: Toolchain, shared_cache: CodeCache) -> Evaluate:
    result = build(math_source(), "evaluate", targets.find("cpu"), toolchain, shared_cache)
    assert isinstance(result, Build), result
    library = ctypes.CDLL(str(result.directory / "kernel.so"))

    def call(name: str, x: Array, w: Array) -> Array:
        y = np.empty_like(x)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, w, y))
        wide = int(x.dtype == np.float64)
        status = library.evaluate(*pointers, len(x), NAMES.index(name), wide, None, None, None)
        assert status == 0
        return y

    return call


@pytest.mark.long(but=3)
@pytest.mark.full(but=["round-float64", "log10-float32", "log2-float64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_stated_accuracy_holds(
    name: str, dtype: type[np.floating[Any]], evaluate: Evaluate
) -> None:
    assert_as_stated(name, dtype, evaluate)


def test_every_function_has_a_stated_error() -> None:
    assert set(UNARY) - set(STATED) == set()
    assert set(STATED) - set(FUNCTIONS) == set()


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("name", ["gfx90a", "gfx1030", "gfx1201"])
def test_all_of_it_compiles_without_device_libraries(
    name: str, toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    result = build(math_source(), "evaluate", targets.find(name), toolchain, shared_cache)
    assert isinstance(result, Build), result
    assert len(result.resources) == 2 * len(NAMES)
    assert sum(each["scratch_bytes"] for each in result.resources.values()) == 0
