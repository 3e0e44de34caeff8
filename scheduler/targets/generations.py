"""All GPUs, from the files of their generations.

A generation's file states every fact of its GPUs and boards; a row here adds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.errors import UserError
from scheduler.targets import (
    ada,
    ampere,
    blackwell,
    cdna2,
    cdna3,
    cdna4,
    hopper,
    rdna2,
    rdna3,
    rdna4,
)
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import Board, HipHardware, Target
from scheduler.targets.nvidia import NvidiaHardware, nvidia_hardware

_AMD = (cdna2, cdna3, cdna4, rdna2, rdna3, rdna4)
_NVIDIA = (ampere, ada, hopper, blackwell)

AMD_GPUS: tuple[AmdHardware, ...] = tuple(gpu for one in _AMD for gpu in one.GPUS)
NVIDIA_GPUS: tuple[NvidiaHardware, ...] = tuple(gpu for one in _NVIDIA for gpu in one.GPUS)
GPUS: tuple[HipHardware, ...] = (*AMD_GPUS, *NVIDIA_GPUS)
AMD_BOARDS: tuple[Board, ...] = tuple(board for one in _AMD for board in one.BOARDS)
NVIDIA_BOARDS: tuple[Board, ...] = tuple(board for one in _NVIDIA for board in one.BOARDS)
AMD_TARGETS = tuple(Target(gpu.processor, gpu.architecture, "rocm", gpu) for gpu in AMD_GPUS)
NVIDIA_TARGETS = tuple(Target(gpu.processor, "cuda", "cuda", gpu) for gpu in NVIDIA_GPUS)

# In help texts.
AMD_EXAMPLE, NVIDIA_EXAMPLE = cdna3.GPU.processor, hopper.GPUS[0].processor
AMD_BOARD_EXAMPLE = cdna3.BOARDS[0].name

_AMD_BY_NAME: Mapping[str, AmdHardware] = MappingProxyType({gpu.processor: gpu for gpu in AMD_GPUS})


def amd_gpu(processor: str) -> AmdHardware:
    """Return AMD's GPU by LLVM's name. ``UserError`` if it is unknown."""
    if processor not in _AMD_BY_NAME:
        raise UserError(f"unknown GPU {processor!r}; known are {', '.join(_AMD_BY_NAME)}")
    return _AMD_BY_NAME[processor]


def target_for(capability: int) -> Target | None:
    """Return the target for a GPU of that compute capability; None if none fits.

    Machine code runs on GPUs of the same major number whose minor number is no smaller (CUDA C++
    Programming Guide, "Binary compatibility").
    """
    serving = [
        target
        for target in NVIDIA_TARGETS
        if nvidia_hardware(target).capability // 10 == capability // 10
        and nvidia_hardware(target).capability <= capability
    ]
    return max(serving, key=lambda target: nvidia_hardware(target).capability, default=None)
