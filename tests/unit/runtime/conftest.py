"""Compiles HIP for the emulation, and runs it on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.runtime.cpu import CpuDevice

PREAMBLE = """
#include <hip/hip_runtime.h>
#define PT_EXPORT __attribute__((visibility("default")))
#define EXPORT extern "C" PT_EXPORT int
"""

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="session")
def compiled(cache: CodeCache, toolchain: Toolchain) -> Callable[..., Path]:
    """`compiled(source, symbol, target="cpu")`: the library that was built."""

    def make(source: str, symbol: str, target: str = "cpu") -> Path:
        made = build(PREAMBLE + source, symbol, targets.find(target), toolchain, cache)
        assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
        return made.directory / "kernel.so"

    return make


class Runner:
    """Calls an exported function on arrays: copied in, and back again after the call."""

    def __init__(self, compiled: Callable[..., Path]) -> None:
        self._compiled = compiled
        self._devices: dict[tuple[str, int], CpuDevice] = {}

    def device(self, target: str, threads: int = 2) -> CpuDevice:
        key = (target, threads)
        if key not in self._devices:
            self._devices[key] = CpuDevice(targets.find(target), threads)
        return self._devices[key]

    def __call__(
        self,
        source: str,
        symbol: str,
        *args: Array | int,
        target: str = "cpu",
        threads: int = 2,
    ) -> None:
        device = self.device(target, threads)
        kinds = ["ptr" if isinstance(arg, np.ndarray) else "i32" for arg in args]
        kernel = device.load(self._compiled(source, symbol, target), symbol, kinds)
        pointers = [
            device.allocate(arg.nbytes) if isinstance(arg, np.ndarray) else arg for arg in args
        ]
        pairs = [
            (pointer, arg)
            for pointer, arg in zip(pointers, args, strict=True)
            if isinstance(arg, np.ndarray)
        ]
        try:
            for pointer, arg in pairs:
                device.write(pointer, arg)
            kernel(pointers)
            device.synchronize()
            for pointer, arg in pairs:
                device.read(pointer, arg)
        finally:
            for pointer, _ in pairs:
                device.free(pointer)

    def close(self) -> None:
        for device in self._devices.values():
            device.close()


@pytest.fixture(scope="module")
def run(compiled: Callable[..., Path]) -> Iterator[Runner]:
    runner = Runner(compiled)
    yield runner
    runner.close()
