"""Performance hazards in a kernel's resources on an AMD GPU, in words."""

from __future__ import annotations

from scheduler.build.rocm.metadata import Resources
from scheduler.isa.hazards import Hazard, HazardKind, code_size_hazards


def hazards(resources: Resources, target: str) -> tuple[Hazard, ...]:
    """Return hazards: register spills, private memory, and code beyond the instruction cache of the
    target's reference board (``Board.instruction_cache_bytes``); empty without any."""
    found = []
    spilled = resources.vgpr_spills + resources.sgpr_spills
    if spilled:
        text = f"{resources.vgpr_spills} VGPRs and {resources.sgpr_spills} SGPRs spilled"
        found.append(Hazard(HazardKind.SPILLS, text))
    if resources.scratch_bytes:
        text = f"{resources.scratch_bytes} bytes of scratch memory per lane"
        found.append(Hazard(HazardKind.SCRATCH, text))
    return (*found, *code_size_hazards(resources.code_bytes, target))
