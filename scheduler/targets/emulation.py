"""The targets that run the sources for AMD's GPUs on this machine's cores."""

from __future__ import annotations

from scheduler.targets.amd import AmdHardware
from scheduler.targets.cdna3 import GPU as DEFAULT  # which has the short name
from scheduler.targets.generations import AMD_GPUS
from scheduler.targets.model import Target


def _emulation(gpu: AmdHardware) -> Target:
    name = "cpu" if gpu == DEFAULT else f"cpu-{gpu.processor}"
    return Target(name, "cpu", "emulation", gpu, emulates=gpu.processor)


EMULATIONS = tuple(_emulation(gpu) for gpu in sorted(AMD_GPUS, key=lambda gpu: gpu != DEFAULT))
