"""Reads listings of AMD GPUs in full; a host's (the emulation's) without interpreting operands."""

from __future__ import annotations

import re

from scheduler.codegen.languages import HIP_SOURCE
from scheduler.isa import assembly
from scheduler.isa.describe import Description
from scheduler.isa.listing import Function, Instruction, Listing
from scheduler.isa.reader import ListingReader, LiveRegisters
from scheduler.isa.rocm.instruction_set.table import describe, falls_through, kind_of
from scheduler.isa.rocm.liveness import live_registers

_SYNTAX = assembly.Syntax(HIP_SOURCE, kind_of, falls_through)
_REGISTER = re.compile(
    r"\b(?:([vas])(?:\d+|\[(\d+)(?::(\d+))?\])|(ttmp)\d+|(vcc|exec|m0)(_lo|_hi)?)"
)
_LABEL = re.compile(r"\.L\w+")
_ADDRESS = re.compile(r"\b(?:offset:|0x)[0-9a-f]+|\b\d{4,}\b")


class EmulationReader(ListingReader):
    """Reads the listings of the host's compiler."""

    def parse(self, text: str) -> Listing:
        return assembly.parse(text, _SYNTAX)

    def normalized(self, instruction: Instruction) -> str:
        """Return the instruction with registers by class and width, without labels and
        addresses."""
        operands = _LABEL.sub("label", instruction.operands)
        operands = _REGISTER.sub(_register, operands)
        return f"{instruction.mnemonic} {_ADDRESS.sub('address', operands)}"


class GpuReader(EmulationReader):
    """Reads listings of an AMD GPU, whose registers can be tracked."""

    dialect = "amdgpu-listing"
    registers_title = "VGPRs"

    def describe(self, mnemonic: str) -> Description | None:
        return describe(mnemonic)

    def live_registers(self, function: Function) -> LiveRegisters:
        return live_registers(function)


def _register(match: re.Match[str]) -> str:
    if match[1]:
        width = int(match[3]) - int(match[2]) + 1 if match[3] else 1
        return f"{match[1]}{width}"
    return "s2" if match[5] and not match[6] else "s1"


GPU = GpuReader()
EMULATION = EmulationReader()
