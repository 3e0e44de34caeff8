"""Kernels in CuteDSL on an NVIDIA GPU: every function and random trees, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler.codegen.caller import TemplateCaller
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Const
from scheduler.runtime.cuda import CudaDevice
from tests.gpu.running import call
from tests.support.pointwise_trees import (
    F32,
    POINTS,
    TYPES,
    Memory,
    functions_problem,
    problem,
    random_memory,
    random_problem,
    read,
)

pytestmark = pytest.mark.gpu

Run = Callable[[TemplateCaller, Memory], Memory]


@pytest.fixture(scope="module")
def run(device: CudaDevice, cutedsl_library: Callable[[str, str], Path]) -> Run:
    """Call a kernel over ``POINTS`` points on copies of what it reads."""

    def run(caller: TemplateCaller, memory: Memory) -> Memory:
        kernel = caller.kernel
        library = cutedsl_library(kernel.source, kernel.name)
        arrays = {}
        for arg in kernel.args:
            name = str(caller.call.args[arg.name])
            empty = np.full(POINTS, 0, DType.from_label(arg.dtype).numpy)
            arrays[name] = empty if arg.is_output else memory[name].copy()
        call(device, library, kernel.name, *arrays.values())
        return arrays

    return run


@pytest.mark.parametrize(
    "dtype", [one for one in TYPES if one.compute_dtype is one], ids=lambda dtype: dtype.label
)
def test_every_function_gives_what_numpy_gives(dtype: DType, run: Run) -> None:
    made = functions_problem(dtype)
    caller = made.template.generate({"threads": 128, "vector": 1})
    assert not made.faults(run(caller, made.memory))


def test_the_sign_of_a_negated_value_is_kept(run: Run) -> None:
    """ptxas and the driver lost it where nothing but the sign was asked for."""
    x = read(TYPES.index(F32), F32)
    inverse = Call("asinh", (Call("abs", (x,), F32),), F32)
    value = Call("copysign", (Const(1.0, F32), Call("neg", (inverse,), F32)), F32)
    made = problem([value], random_memory(1))
    found = run(made.template.generate({"threads": 128, "vector": 2}), made.memory)
    assert (found["y0"] == -1).all()


@pytest.mark.parametrize("vector", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_random_trees_give_what_they_mean(seed: int, vector: int, run: Run) -> None:
    made = random_problem(seed, 27)
    caller = made.template.generate({"threads": 128, "vector": vector})
    assert not made.faults(run(caller, made.memory))
