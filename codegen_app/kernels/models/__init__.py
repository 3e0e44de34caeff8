"""Generated kernels, their builds, listings and modellings."""

from __future__ import annotations

from codegen_app.kernels.models.build import Build
from codegen_app.kernels.models.foreign_kernel import ForeignKernel
from codegen_app.kernels.models.generated_kernel import GeneratedKernel, KernelUse
from codegen_app.kernels.models.instruction import InstructionUse, Mnemonic
from codegen_app.kernels.models.modelling import Modelling
from codegen_app.kernels.models.packing import Packing
from codegen_app.kernels.models.problem_work import ProblemWork

__all__ = [
    "Build",
    "ForeignKernel",
    "GeneratedKernel",
    "InstructionUse",
    "KernelUse",
    "Mnemonic",
    "Modelling",
    "Packing",
    "ProblemWork",
]
