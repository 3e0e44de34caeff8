"""The figures of the targets that the model supports (``targets/cycle_model.py``)."""

from __future__ import annotations

from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware
from scheduler.targets.cycle_model import End, Machine, Rates
from scheduler.targets.generations import amd_gpu


def machine(target: Target) -> Machine:
    """Return the figures of a target. ``KeyError`` if the model does not support it."""
    return processor_machine(amd_hardware(target).processor)


def processor_machine(processor: str) -> Machine:
    """Return the figures of a processor by LLVM's name, likewise."""
    machine = amd_gpu(processor).machine
    if machine is None:
        raise KeyError(processor)
    return machine


def rates_at(target: Target, end: End) -> Rates:
    """Return the figures of a target at one end of their ranges, likewise."""
    gpu = amd_hardware(target)
    return machine(target).at(end, simds=gpu.simds_per_cu, wave=gpu.wavefront)
