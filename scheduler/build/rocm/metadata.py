"""Kernel data of a listing: the ``amdhsa.kernels`` metadata and the comments after each kernel.

The metadata is YAML of a fixed shape that the compiler writes; only that shape is parsed. Fields:
LLVM, "User Guide for AMDGPU Backend", code object metadata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest

from scheduler.build.rocm.occupancy import Demand, occupancy
from scheduler.targets import Target

_METADATA = re.compile(r"\.amdgpu_metadata\n(.*?)\.end_amdgpu_metadata", re.DOTALL)
_FIELD = re.compile(r"^ {2}(?: {2}|- )\.(\w+):[ \t]*(.*?)\s*$", re.MULTILINE)
_ENTRY_START = re.compile(r"^ {2}- ", re.MULTILINE)
_BEGIN = re.compile(r"; -- Begin function (\S+)")
_COMMENT = re.compile(r"^; (codeLenInByte = |Occupancy: )(\d+)", re.MULTILINE)

# The metadata's names of what a kernel's entry counts.
_COUNT_KEYS = {
    "vgpr_count": "vgpr_count",
    "agpr_count": "agpr_count",
    "sgpr_count": "sgpr_count",
    "vgpr_spill_count": "vgpr_spill_count",
    "sgpr_spill_count": "sgpr_spill_count",
    "lds_bytes": "group_segment_fixed_size",
    "scratch_bytes": "private_segment_fixed_size",
    "wavefront_size": "wavefront_size",
    "max_workgroup": "max_flat_workgroup_size",
}


@dataclass(frozen=True)
class KernelMetadata:
    """One kernel's entry. Registers are counts per lane (SGPR: per wave), sizes are bytes;
    ``vgpr_count`` is the allocated count. ``compiler_occupancy`` is the compiler's own figure."""

    name: str
    vgpr_count: int
    agpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    lds_bytes: int
    scratch_bytes: int
    wavefront_size: int
    max_workgroup: int
    wgp_mode: bool
    code_bytes: int = 0
    compiler_occupancy: int = 0

    def demand(self, block: int | None = None, dynamic_lds_bytes: int = 0) -> Demand:
        """Return the demand on a compute unit: for blocks of ``block`` threads or, as the compiler
        counts, for any size that the kernel may be launched with."""
        return Demand(
            vgpr=self.vgpr_count,
            sgpr=self.sgpr_count,
            lds_bytes=self.lds_bytes + dynamic_lds_bytes,
            workgroup=block or self.max_workgroup,
            wgp_mode=self.wgp_mode,
            smallest_workgroup=block or 1,
        )


@dataclass(frozen=True)
class Resources:
    """What a device function uses, as the compiler reports it (units in the names).

    ``vgpr`` is the allocated count (on gfx90a and later, architectural plus accumulation
    registers), of which ``agpr`` are accumulation registers.
    """

    vgpr: int
    agpr: int
    sgpr: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    code_bytes: int
    wavefront: int
    occupancy_waves_per_simd: int
    limiter: str


def parse_kernels(listing: str) -> dict[str, KernelMetadata]:
    """Return the kernels of a listing by name, in order; none if it has no metadata (a CPU's)."""
    metadata = _METADATA.search(listing)
    if not metadata:
        return {}
    kernels = {}
    for entry_text in _ENTRY_START.split(metadata[1].split("amdhsa.target:")[0])[1:]:
        fields = {match[1]: match[2] for match in _FIELD.finditer("  - " + entry_text)}
        name = fields.get("name", "").strip("'\"")
        if name:
            counts = {field: _number(fields.get(key, "0")) for field, key in _COUNT_KEYS.items()}
            wgp_mode = _number(fields.get("workgroup_processor_mode", "0")) == 1
            kernels[name] = KernelMetadata(name, wgp_mode=wgp_mode, **counts)
    # Code size and the compiler's occupancy are in comments after each function.
    starts = [*_BEGIN.finditer(listing)]
    for start, following in zip_longest(starts, starts[1:]):
        if start[1] in kernels:
            text = listing[start.end() : following.start() if following else len(listing)]
            comment_values = {match[1]: int(match[2]) for match in _COMMENT.finditer(text)}
            kernels[start[1]] = replace(
                kernels[start[1]],
                code_bytes=comment_values.get("codeLenInByte = ", 0),
                compiler_occupancy=comment_values.get("Occupancy: ", 0),
            )
    return kernels


def parse_resources(listing: str, target: Target) -> dict[str, Resources]:
    """Return the resources of each kernel, with the compiler's occupancy: without dynamic LDS."""
    result = {}
    for name, kernel in parse_kernels(listing).items():
        resident = occupancy(kernel.demand(), target)
        result[name] = Resources(
            vgpr=kernel.vgpr_count,
            agpr=kernel.agpr_count,
            sgpr=kernel.sgpr_count,
            lds_bytes=kernel.lds_bytes,
            scratch_bytes=kernel.scratch_bytes,
            vgpr_spills=kernel.vgpr_spill_count,
            sgpr_spills=kernel.sgpr_spill_count,
            code_bytes=kernel.code_bytes,
            wavefront=kernel.wavefront_size,
            occupancy_waves_per_simd=resident.waves,
            limiter=str(resident.limiter),
        )
    return result


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
