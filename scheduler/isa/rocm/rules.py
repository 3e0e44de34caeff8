"""The occupancy of AMD GPUs, behind the interface of all makers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.build.rocm.metadata import Resources as AmdResources
from scheduler.build.rocm.metadata import parse_kernels
from scheduler.build.rocm.occupancy import Demand, occupancy
from scheduler.isa.hazards import Hazard, HazardKind, code_size_hazards
from scheduler.isa.occupancy import Column, OccupancyRules, Resources
from scheduler.isa.rocm.next_step import next_step
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware


class AmdRules(OccupancyRules):
    """Counts as ``build/rocm/occupancy.py`` does."""

    figures = AmdResources

    headings = MappingProxyType(
        {
            "VGPR": "vgpr",
            "AGPR": "agpr",
            "SGPR": "sgpr",
            "LDS B": "lds_bytes",
            "scratch B": "scratch_bytes",
            "waves/SIMD": "occupancy_waves_per_simd",
            "limited by": "limiter",
        }
    )
    columns = (
        Column("VGPR", "", ("vgpr",)),
        Column("of which AGPR", "", ("agpr",)),
        Column("SGPR", "", ("sgpr",)),
        Column("LDS", "B", ("lds_bytes",)),
        Column("Scratch", "B", ("scratch_bytes",)),
        Column("Spills", "VGPR, SGPR", ("vgpr_spills", "sgpr_spills")),
        Column("Code", "B", ("code_bytes",)),
    )
    waves_heading = ("Waves", "per SIMD")
    numbers = (
        "occupancy_waves_per_simd",
        "vgpr",
        "agpr",
        "sgpr",
        "lds_bytes",
        "scratch_bytes",
        "vgpr_spills",
        "sgpr_spills",
        "code_bytes",
    )

    common = MappingProxyType(
        {
            "registers": "vgpr",
            "shared_bytes": "lds_bytes",
            "scratch_bytes": "scratch_bytes",
            "code_bytes": "code_bytes",
        }
    )

    def max_waves(self, target: Target) -> int:
        return amd_hardware(target).max_waves_per_simd

    def simds(self, target: Target) -> int:
        return amd_hardware(target).simds_per_cu

    def waves(self, resources: Resources) -> int:
        return AmdResources(**resources).occupancy_waves_per_simd

    def waves_before_build(self, threads: int, shared_bytes: int, target: Target) -> float:
        gpu = amd_hardware(target)
        waves = -(-threads // gpu.wavefront)
        groups = gpu.lds_bytes // shared_bytes if shared_bytes else gpu.max_blocks_per_unit
        resident = max(1, groups) * waves / gpu.simds_per_cu
        return max(0.25, min(float(gpu.max_waves_per_simd), resident))

    def registers(self, resources: Resources) -> int:
        return AmdResources(**resources).vgpr

    def waves_by_registers(self, resources: Resources, target: Target) -> int:
        figures = AmdResources(**resources)
        demand = Demand(figures.vgpr, 0, 0, workgroup=figures.wavefront)
        return max(1, occupancy(demand, target).by_vgpr)

    def spills(self, resources: Resources) -> bool:
        return bool(resources["vgpr_spills"] or resources["scratch_bytes"])

    def hazards(self, resources: Resources, target: Target) -> tuple[Hazard, ...]:
        figures = AmdResources(**resources)
        hazard_list = []
        if figures.vgpr_spills + figures.sgpr_spills:
            text = f"{figures.vgpr_spills} VGPRs and {figures.sgpr_spills} SGPRs spilled"
            hazard_list.append(Hazard(HazardKind.SPILLS, text))
        if figures.scratch_bytes:
            text = f"{figures.scratch_bytes} bytes of scratch memory per lane"
            hazard_list.append(Hazard(HazardKind.SCRATCH, text))
        return (*hazard_list, *code_size_hazards(figures.code_bytes, target.name))

    def next_steps(
        self,
        listing: str,
        resources: Mapping[str, Resources],  # noqa: ARG002 - the listing's metadata says more
        target: Target,
    ) -> Mapping[str, str]:
        steps = {
            name: next_step(metadata.demand(), target)
            for name, metadata in parse_kernels(listing).items()
        }
        return {name: step.text if step else "" for name, step in steps.items()}


RULES = AmdRules()
