"""Machines and code objects of the generated history: resources follow the makers' rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from scheduler.build.cuda.occupancy import Demand as CudaDemand
from scheduler.build.cuda.occupancy import occupancy as cuda_occupancy
from scheduler.build.cuda.resources import Resources as CudaResources
from scheduler.build.rocm.metadata import Resources as AmdResources
from scheduler.build.rocm.occupancy import Demand as AmdDemand
from scheduler.build.rocm.occupancy import occupancy as amd_occupancy
from scheduler.targets import cdna3, find, hopper, rdna3
from scheduler.targets.nvidia import NvidiaHardware

_THREADS = 256
_REGISTERS = (40, 56, 64, 80, 96, 128, 168)  # any two of them lie on different occupancy steps


@dataclass(frozen=True)
class Rig:
    """A machine: a device with its driver, runtime and compiler, and their later versions."""

    target: str
    device: str
    runtime: str
    drivers: tuple[str, ...]
    compiler: str
    compiler_versions: tuple[str, ...]
    clock: str
    clock_mhz: float


def rigs() -> tuple[Rig, ...]:
    """Return one NVIDIA machine and two AMD machines."""
    return (
        Rig(
            target=hopper.GPUS[0].processor,
            device="NVIDIA H200",
            runtime="CUDA 13.0",
            drivers=tuple(f"NVIDIA 580.{minor}.03" for minor in range(95, 103)),
            compiler="bundled+ptxas",
            compiler_versions=tuple(f"clang 22.1.8, ptxas 13.0.{patch}" for patch in range(88, 96)),
            clock="sm_clock_mhz",
            clock_mhz=1980,
        ),
        _amd(cdna3.GPU.processor, "AMD Instinct MI300X", 2100),
        _amd(rdna3.GPU.processor, "AMD Radeon RX 7900 XTX", 2490),
    )


def _amd(target: str, device: str, clock_mhz: float) -> Rig:
    return Rig(
        target=target,
        device=device,
        runtime="ROCm 7.1",
        drivers=tuple(f"amdgpu 6.{minor}.5" for minor in range(8, 16)),
        compiler="rocm",
        compiler_versions=tuple(f"clang 20.0.{patch}" for patch in range(8)),
        clock="gpu_clock_mhz",
        clock_mhz=clock_mhz,
    )


@dataclass(frozen=True)
class KernelCode:
    """Figures of one kernel's code object."""

    target: str
    registers: int
    shared_bytes: int
    spilled: int
    inner_loop: Mapping[str, int]

    @classmethod
    def sample(cls, rig: Rig, rng: np.random.Generator) -> KernelCode:
        """Return a random kernel for that machine."""
        mix = {
            "matrix": int(rng.choice([0, 16, 32])),
            "vector": int(rng.integers(20, 120)),
            "lds": int(rng.integers(4, 24)),
            "global": int(rng.integers(2, 12)),
            "branch": 1,
        }
        registers = int(rng.choice(_REGISTERS[1:-1]))
        return cls(rig.target, registers, int(rng.choice([0, 8192])), 0, mix)

    @property
    def resources(self) -> Mapping[str, Any]:
        """Return the resources as the target's recipe gives them."""
        target = find(self.target)
        if isinstance(target.hardware, NvidiaHardware):
            limits = cuda_occupancy(CudaDemand(self.registers, self.shared_bytes, _THREADS), target)
            return asdict(
                CudaResources(
                    registers=self.registers,
                    shared_bytes=self.shared_bytes,
                    stack_bytes=self.spilled * 4,
                    spill_store_bytes=self.spilled * 4,
                    spill_load_bytes=self.spilled * 4,
                    barriers=1,
                    threads=_THREADS,
                    occupancy_blocks_per_sm=limits.blocks,
                    occupancy_warps_per_sm=limits.warps,
                    limiter=str(limits.limiter),
                    code_bytes=16 * sum(self.inner_loop.values()) * 8,
                )
            )
        waves = amd_occupancy(AmdDemand(self.registers, 48, self.shared_bytes, _THREADS), target)
        return asdict(
            AmdResources(
                vgpr=self.registers,
                agpr=0,
                sgpr=48,
                lds_bytes=self.shared_bytes,
                scratch_bytes=self.spilled * 4,
                vgpr_spills=self.spilled,
                sgpr_spills=0,
                code_bytes=8 * sum(self.inner_loop.values()) * 8,
                wavefront=target.wavefront,
                occupancy_waves_per_simd=waves.waves,
                limiter=str(waves.limiter),
            )
        )


def edit_code(
    code: KernelCode, what: str, rng: np.random.Generator, min_log_ratio: float
) -> tuple[KernelCode, float]:
    """Return the code after such a commit, and the ratio by which the times move: by at least the
    logarithm ``min_log_ratio``, slower for more registers, spills and instructions, faster
    for fewer."""
    is_slower = bool(rng.random() < 0.6)
    size = max(float(rng.uniform(0.04, 0.3)), min_log_ratio)
    if what == "registers":
        index = _REGISTERS.index(code.registers)
        is_slower = index == 0 or (is_slower and index + 1 < len(_REGISTERS))
        code = replace(code, registers=_REGISTERS[index + (1 if is_slower else -1)])
    elif what == "spills":
        is_slower = not code.spilled
        code = replace(code, spilled=int(rng.integers(4, 40)) if is_slower else 0)
    else:
        step = 1 if is_slower else -1
        mix = {**code.inner_loop}
        mix["vector"] = max(4, mix["vector"] + step * int(rng.integers(4, 16)))
        mix["global"] = max(1, mix["global"] + step)
        code = replace(code, inner_loop=mix)
    return code, float(np.exp(size if is_slower else -size))
