"""Building and running one candidate on CPU emulation, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.benchmark_request import ScalarArg, TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.matrix_instructions import MatrixInstruction
from scheduler.runtime.cpu import CpuDevice
from scheduler.runtime.device import Device
from scheduler.targets import find
from tests.support.memory import from_device, to_device

Array = npt.NDArray[Any]


def in_listings(one: MatrixInstruction) -> str:
    """A pattern for its name as the assembler writes it: some have no gap before the element."""
    return f"v_{one.family}_{one.accumulator}_{one.m}x{one.n}x{one.k}_?{one.element}"


def random_values(rng: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Normal values that the type can hold."""
    return from_device(to_device(rng.standard_normal(size), dtype), dtype)


class Runner:
    """Runs candidates for one emulated target."""

    def __init__(self, cache: CodeCache, toolchain: Toolchain, target: str = "cpu") -> None:
        self._cache = cache
        self._toolchain = toolchain
        self._target = find(target)

    def build(self, caller: TemplateCaller) -> Build:
        result = build(
            caller.kernel.source, caller.name, self._target, self._toolchain, self._cache
        )
        assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
        return result

    def __call__(
        self,
        caller: TemplateCaller,
        inputs: Mapping[str, Array],
        bindings: Mapping[str, int] | None = None,
    ) -> dict[str, Array]:
        """Outputs by buffer, in float64; outputs are filled with NaN's bits before the run."""
        library = Path(self.build(caller).directory) / "kernel.so"
        device = CpuDevice(self._target, 1)
        try:
            return run_library(device, library, caller, self._target.name, inputs, bindings or {})
        finally:
            device.close()


def run_library(
    device: Device,
    library: Path,
    caller: TemplateCaller,
    target: str,
    inputs: Mapping[str, Array],
    bindings: Mapping[str, int],
) -> dict[str, Array]:
    """What the caller's kernel, built into ``library``, gives on a device: outputs by buffer."""
    request = caller.benchmark_request(target, bindings)
    kernel = device.load(library, request.symbol, request.arg_types)
    pointers: dict[str, int] = {}
    args: list[int | float] = []
    for arg in request.args:
        if isinstance(arg, TensorArg):
            pointers[arg.buffer] = _place(device, arg, inputs.get(arg.buffer))
            args.append(pointers[arg.buffer])
        else:
            args.append(arg.value)
    workspace_bytes = kernel.workspace_bytes(args)
    sizes = {arg.name: arg.value for arg in request.args if isinstance(arg, ScalarArg)}
    said = evaluate(caller.kernel.workspace_bytes, {**request.bindings, **sizes})
    assert workspace_bytes == said, "the manifest's figure is the library's"
    kernel(args, device.allocate(workspace_bytes))
    device.synchronize()
    return {
        arg.buffer: _take(device, pointers[arg.buffer], arg)
        for arg in request.args
        if isinstance(arg, TensorArg) and arg.is_output
    }


def _place(device: Device, arg: TensorArg, values: Array | None) -> int:
    dtype = DType.from_label(arg.dtype)
    held = np.full(elements(arg), np.nan)
    if not dtype.is_float:
        held = np.zeros(elements(arg))
    memory = to_device(held, dtype)
    if values is not None:
        strided(memory, arg)[...] = to_device(values, dtype)
    pointer = device.allocate(memory.nbytes)
    if memory.nbytes:
        device.write(pointer, memory)
    return pointer


def _take(device: Device, pointer: int, arg: TensorArg) -> Array:
    dtype = DType.from_label(arg.dtype)
    memory = np.zeros(elements(arg), dtype.numpy)
    if memory.nbytes:
        device.read(pointer, memory)
    return from_device(strided(memory, arg), dtype)


def elements(arg: TensorArg) -> int:
    """From its first in memory to its last."""
    if 0 in arg.size:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(arg.size, arg.stride, strict=True))


def strided(memory: Array, arg: TensorArg) -> Array:
    """Its memory in its own shape."""
    steps = tuple(step * memory.itemsize for step in arg.stride)
    return np.lib.stride_tricks.as_strided(memory, arg.size, steps)


def tolerance(k: int, dtype: DType, magnitude: float = 1.0) -> float:
    """Bound of the error of a sum of k products of unit normal values, stored in ``dtype``."""
    accumulate = DType.F64 if dtype is DType.F64 else DType.F32
    return magnitude * 8 * (k * accumulate.eps * 2 + np.sqrt(k) * dtype.eps + dtype.eps)
