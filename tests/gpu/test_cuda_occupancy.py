"""Registers, shared memory and occupancy as the build says them, against the driver's own answers
for the same machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.build.cuda.commands import CUBIN, PTX
from scheduler.build.cuda.occupancy import Demand, occupancy
from scheduler.build.cuda.resources import dynamic_shared_bytes
from scheduler.build.cuda.toolchains import EXTRA, CudaToolchain
from scheduler.build.model import Build
from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware
from tests.gpu.running import SAMPLES, builds_of, sample

pytestmark = pytest.mark.gpu

SYNTHETIC = 200
_SHARED_LIMIT = 48 << 10  # of static shared memory; dynamic shared memory above it is opted in


class Code:
    """A cubin on the device, asked through the driver."""

    def __init__(self, cubin: Path) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._module = self._do(driver.cuModuleLoadData, cubin.read_bytes())

    def _do(self, function: Callable[..., Any], *args: Any) -> Any:
        status, *values = function(*args)
        assert status == self._driver.CUresult.CUDA_SUCCESS, f"{function.__name__}: {status.name}"
        return values[0] if values else None

    def attribute(self, kernel: str, name: str) -> int:
        kind = getattr(self._driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self._do(self._driver.cuFuncGetAttribute, kind, self._function(kernel)))

    def blocks(self, kernel: str, threads: int, dynamic: int) -> int:
        """How many blocks the driver would have on an SM."""
        driver, function = self._driver, self._function(kernel)
        if dynamic:
            kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._do(driver.cuFuncSetAttribute, function, kind, dynamic)
        ask = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(self._do(ask, function, threads, dynamic))

    def _function(self, kernel: str) -> Any:
        return self._do(self._driver.cuModuleGetFunction, self._module, kernel.encode())

    def close(self) -> None:
        self._do(self._driver.cuModuleUnload, self._module)


@pytest.fixture(autouse=True)
def _assembled(nvidia: DeviceInfo, compiler: CudaToolchain, target: Target) -> None:
    if not compiler.ptxas:
        pytest.skip(f"ptxas is not installed: {EXTRA}")
    if nvidia.attributes["architecture"] != target.name:
        pytest.skip(f"{target.name} stands for {nvidia.attributes['architecture']} here")


def differences(made: Build, device: CudaDevice) -> list[str]:
    """One line for each figure of a build that the driver sees otherwise."""
    device.synchronize()  # makes its context the current one
    dynamic = dynamic_shared_bytes((made.directory / PTX).read_text())
    code, found = Code(made.directory / CUBIN), []
    for kernel, said in made.resources.items():
        asked = dynamic.get(kernel, 0)
        seen = {
            "registers": code.attribute(kernel, "NUM_REGS"),
            "shared_bytes": code.attribute(kernel, "SHARED_SIZE_BYTES") + asked,
            "occupancy_blocks_per_sm": code.blocks(kernel, said["threads"], asked),
        }
        found += [
            f"{kernel} ({dict(said)}): {name} {said[name]}, the driver says {value}"
            for name, value in seen.items()
            if said[name] != value
        ]
    code.close()
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kernel_of_a_sample_has_the_occupancy_that_the_driver_says(
    name: str, device: CudaDevice, target: Target, compiler: CudaToolchain
) -> None:
    graph = sample(name, SAMPLES[name])
    generated = pipeline.generate(pipeline.schedule(pipeline.lower(graph)), [target])
    wrong, kernels = [], 0
    for made in builds_of(generated, target, compiler).values():
        wrong += differences(made, device)
        kernels += len(made.resources)
    assert kernels >= len(generated.kernels)
    assert not wrong, "\n".join(wrong)


def synthetic(count: int, seed: int) -> tuple[str, Mapping[str, int]]:
    """A source of kernels with more and fewer registers, threads and static shared memory; the
    threads of each by its name."""
    rng = np.random.default_rng(seed)
    texts, threads_of = [], {}
    for number in range(count):
        threads = int(rng.integers(1, 33)) * 32 if number % 4 else int(rng.integers(1, 1025))
        bounds = f"{threads}, {int(rng.integers(1, 5))}" if number % 3 == 0 else f"{threads}"
        live = int(rng.choice((1, 4, 12, 24, 40, 64, 100, 160)))
        shared = int(rng.choice((0, 0, 4, 1000, 1024, 5000, 16384, 40000, _SHARED_LIMIT)))
        name = f"synthetic_{number}"
        threads_of[name] = threads
        texts.append(_kernel(name, bounds, live, shared))
    export = "EXPORT go(size_t*, uint8_t*, hipStream_t) { return 0; }"
    return "\n".join((*texts, export)), threads_of


def _kernel(name: str, bounds: str, live: int, shared: int) -> str:
    """Loads values, waits, and stores their products: all are alive at the barrier."""
    static = f"__shared__ unsigned char lds[{shared}];" if shared else ""
    use = f"lds[threadIdx.x % {shared}] = x[threadIdx.x];" if shared else ""
    read = f" + lds[(threadIdx.x + 1) % {shared}]" if shared else ""
    return f"""
extern "C" __global__ void __launch_bounds__({bounds}) {name}(const float* x, float* y) {{
  {static}
  float v[{live}];
#pragma unroll
  for (int i = 0; i < {live}; ++i) v[i] = x[i * 1024 + threadIdx.x];
  {use}
  __syncthreads();
#pragma unroll
  for (int i = 0; i < {live}; ++i) y[i * 1024 + threadIdx.x] = v[i] * v[{live} - 1 - i]{read};
}}"""


@pytest.mark.parametrize("seed", range(4))
def test_kernels_of_any_size_have_the_occupancy_that_the_driver_says(
    seed: int, device: CudaDevice, target: Target, compiled: Callable[[str, str], Build]
) -> None:
    count = SYNTHETIC // 4
    source, threads_of = synthetic(count, seed)
    made = compiled(source, "go")
    assert set(made.resources) == set(threads_of)
    assert max(one["registers"] for one in made.resources.values()) > 64
    wrong = differences(made, device)
    code, rng = Code(made.directory / CUBIN), np.random.default_rng(seed)
    most = nvidia_hardware(target).max_lds_per_block_bytes
    for kernel, said in made.resources.items():
        dynamic = int(rng.integers(0, most - said["shared_bytes"] + 1))
        demand = Demand(said["registers"], said["shared_bytes"] + dynamic, threads_of[kernel])
        ours, drivers = occupancy(demand, target), code.blocks(kernel, demand.threads, dynamic)
        if ours.blocks != drivers:
            wrong.append(f"{kernel}: {demand}: {ours}, the driver says {drivers}")
    code.close()
    assert not wrong, "\n".join(wrong)
