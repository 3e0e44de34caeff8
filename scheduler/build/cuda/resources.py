"""The resources that each kernel uses of an NVIDIA GPU, as ptxas reports them, or from the PTX if
nothing was assembled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.build.cuda.occupancy import Demand, occupancy
from scheduler.targets import Target

_THREADS = re.compile(r"^\.(?:max|req)ntid\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", re.MULTILINE)
_USAGE = re.compile(
    r"Function properties for (?P<name>\w+)\n"
    r"\s*(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores,"
    r" (?P<loads>\d+) bytes spill loads\n"
    r".*?Used (?P<registers>\d+) registers(?P<rest>.*)"
)
_SHARED = re.compile(r"(\d+) bytes smem")
_BARRIERS = re.compile(r"used (\d+) barriers")


@dataclass(frozen=True)
class Resources:
    """Units in the names. ``registers`` are 32-bit, per thread; shared memory is per block; stack
    and spills are per thread, in its local memory."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int
    threads: int
    occupancy_blocks_per_sm: int
    occupancy_warps_per_sm: int
    limiter: str
    code_bytes: int = 0  # not in results that were recorded before it was read


def parse_resources(
    usage: str,
    ptx: str,
    target: Target,
    sections: Mapping[str, int],
    dynamic: Mapping[str, int] | None = None,
) -> Mapping[str, Resources]:
    """Return resources by kernel, from the output of ``ptxas -v``, the PTX that it read, and the
    section sizes of the cubin that it wrote. ``dynamic`` is the shared memory that a kernel's
    launches request, for kernels whose PTX does not give it."""
    threads = block_sizes(ptx)
    dynamic = dynamic_shared_bytes(ptx) if dynamic is None else dynamic
    resources = {}
    for match in _USAGE.finditer(usage):
        name, usage_details = match["name"], match["rest"]
        if name not in threads:
            continue  # a device function, not a kernel
        shared = _SHARED.search(usage_details)
        barriers = _BARRIERS.search(usage_details)
        demand = Demand(
            registers=int(match["registers"]),
            shared_bytes=(int(shared[1]) if shared else 0) + dynamic.get(name, 0),
            threads=threads[name],
        )
        resident = occupancy(demand, target)
        resources[name] = Resources(
            registers=demand.registers,
            shared_bytes=demand.shared_bytes,
            stack_bytes=int(match["stack"]),
            spill_store_bytes=int(match["stores"]),
            spill_load_bytes=int(match["loads"]),
            barriers=int(barriers[1]) if barriers else 0,
            threads=demand.threads,
            occupancy_blocks_per_sm=resident.blocks,
            occupancy_warps_per_sm=resident.warps,
            limiter=resident.limiter,
            code_bytes=sections.get(f".text.{name}", 0),
        )
    return resources


def dynamic_shared_bytes(ptx: str) -> dict[str, int]:
    """Return the shared memory that the launches of each kernel request, as our header writes
    it."""
    sizes, entry = {}, ""
    for match in re.finditer(r"\.entry\s+(\w+)\(|// kiln_shared_bytes (\d+)", ptx):
        if match[1]:
            entry = match[1]
        else:
            sizes[entry] = int(match[2])
    return sizes


def block_sizes(ptx: str) -> dict[str, int]:
    """Return the maximum threads per block of each kernel, from its launch bounds."""
    sizes: dict[str, int] = {}
    for entry in re.finditer(r"\.entry\s+(\w+)\(.*?^\{", ptx, re.MULTILINE | re.DOTALL):
        bounds = _THREADS.search(entry[0])
        x, y, z = (int(part or 1) for part in bounds.groups()) if bounds else (1024, 1, 1)
        sizes[entry[1]] = x * y * z
    return sizes
