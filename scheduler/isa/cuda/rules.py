"""The occupancy of NVIDIA GPUs, behind the interface of all makers. Warps are counted over a whole
SM: a block's warps are spread over its four partitions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.build.cuda.occupancy import Demand, occupancy
from scheduler.build.cuda.resources import Resources as Figures
from scheduler.isa.cuda.next_step import next_step
from scheduler.isa.hazards import Hazard, HazardKind, code_size_hazards
from scheduler.isa.occupancy import Column, OccupancyRules, Resources
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware


class CudaRules(OccupancyRules):
    """Counts as ``build/cuda/occupancy.py`` does."""

    figures = Figures

    headings = MappingProxyType(
        {
            "registers": "registers",
            "shared B": "shared_bytes",
            "stack B": "stack_bytes",
            "warps/SM": "occupancy_warps_per_sm",
            "limited by": "limiter",
        }
    )
    columns = (
        Column("Blocks", "per SM", ("occupancy_blocks_per_sm",)),
        Column("Threads", "", ("threads",)),
        Column("Registers", "", ("registers",)),
        Column("Shared memory", "B", ("shared_bytes",)),
        Column("Stack", "B", ("stack_bytes",)),
        Column("Spills", "B stored, loaded", ("spill_store_bytes", "spill_load_bytes")),
        Column("Code", "B", ("code_bytes",)),
    )
    waves_heading = ("Warps", "per SM")
    numbers = (
        "occupancy_warps_per_sm",
        "registers",
        "shared_bytes",
        "stack_bytes",
        "spill_store_bytes",
        "spill_load_bytes",
        "code_bytes",
    )

    common = MappingProxyType(
        {
            "registers": "registers",
            "shared_bytes": "shared_bytes",
            "scratch_bytes": "stack_bytes",
            "code_bytes": "code_bytes",
        }
    )

    def max_waves(self, target: Target) -> int:
        return nvidia_hardware(target).max_warps

    def simds(self, target: Target) -> int:  # noqa: ARG002 - the SM is counted as one
        return 1

    def waves(self, resources: Resources) -> int:
        return int(resources["occupancy_warps_per_sm"])

    def waves_before_build(self, threads: int, shared_bytes: int, target: Target) -> float:
        return max(1.0, float(occupancy(Demand(0, shared_bytes, threads), target).warps))

    def registers(self, resources: Resources) -> int:
        return int(resources["registers"])

    def waves_by_registers(self, resources: Resources, target: Target) -> int:
        demand = Demand(resources["registers"], 0, resources["threads"])
        warps = -(-demand.threads // target.wavefront)
        blocks = occupancy(demand, target).by_registers
        return min(self.max_waves(target), blocks * warps)

    def spills(self, resources: Resources) -> bool:
        return bool(resources["spill_store_bytes"] or resources["spill_load_bytes"])

    def hazards(self, resources: Resources, target: Target) -> tuple[Hazard, ...]:
        hazard_list = []
        if self.spills(resources):
            stored, loaded = resources["spill_store_bytes"], resources["spill_load_bytes"]
            text = f"{stored} bytes of registers stored to local memory, {loaded} bytes loaded"
            text += " per thread"
            hazard_list.append(Hazard(HazardKind.SPILLS, text))
        if resources["stack_bytes"]:
            text = f"{resources['stack_bytes']} bytes of local memory per thread"
            hazard_list.append(Hazard(HazardKind.SCRATCH, text))
        return (*hazard_list, *code_size_hazards(resources.get("code_bytes", 0), target.name))

    def next_steps(
        self,
        listing: str,  # noqa: ARG002 - it does not say what is asked for at a launch
        resources: Mapping[str, Resources],
        target: Target,
    ) -> Mapping[str, str]:
        steps = {}
        for name, figures in resources.items():
            demand = Demand(figures["registers"], figures["shared_bytes"], figures["threads"])
            steps[name] = next_step(demand, target)
        return {name: step.text if step else "" for name, step in steps.items()}


RULES = CudaRules()
