"""A kernel's 64-byte descriptor for the command processor, as assembler directives.

LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor. Registers are counted in granules there,
so that the directives round the requested numbers up.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from scheduler.targets.amd import AmdHardware

SIZE = 64
_LAYOUT = struct.Struct("<IIIIq20sIIIHHI")

# Directives that are bits of COMPUTE_PGM_RSRC1, of COMPUTE_PGM_RSRC2 and of the properties of the
# code: name, first bit, number of bits, and the least and largest major version that has them.
_ANY = (0, 99)
_RSRC1 = (
    ("float_round_mode_32", 12, 2, _ANY),
    ("float_round_mode_16_64", 14, 2, _ANY),
    ("float_denorm_mode_32", 16, 2, _ANY),
    ("float_denorm_mode_16_64", 18, 2, _ANY),
    ("dx10_clamp", 21, 1, (0, 11)),
    ("round_robin_scheduling", 21, 1, (12, 99)),
    ("ieee_mode", 23, 1, (0, 11)),
    ("fp16_overflow", 26, 1, (9, 99)),
    ("workgroup_processor_mode", 29, 1, (10, 99)),
    ("memory_ordered", 30, 1, (10, 99)),
    ("forward_progress", 31, 1, (10, 99)),
)
_RSRC2 = (
    ("enable_private_segment", 0, 1, _ANY),
    ("user_sgpr_count", 1, 5, _ANY),
    ("system_sgpr_workgroup_id_x", 7, 1, _ANY),
    ("system_sgpr_workgroup_id_y", 8, 1, _ANY),
    ("system_sgpr_workgroup_id_z", 9, 1, _ANY),
    ("system_sgpr_workgroup_info", 10, 1, _ANY),
    ("system_vgpr_workitem_id", 11, 2, _ANY),
    ("exception_fp_ieee_invalid_op", 24, 1, _ANY),
    ("exception_fp_denorm_src", 25, 1, _ANY),
    ("exception_fp_ieee_div_zero", 26, 1, _ANY),
    ("exception_fp_ieee_overflow", 27, 1, _ANY),
    ("exception_fp_ieee_underflow", 28, 1, _ANY),
    ("exception_fp_ieee_inexact", 29, 1, _ANY),
    ("exception_int_div_zero", 30, 1, _ANY),
)
_PROPERTIES = (
    ("user_sgpr_private_segment_buffer", 0, 1, (0, 11)),
    ("user_sgpr_dispatch_ptr", 1, 1, _ANY),
    ("user_sgpr_queue_ptr", 2, 1, _ANY),
    ("user_sgpr_kernarg_segment_ptr", 3, 1, _ANY),
    ("user_sgpr_dispatch_id", 4, 1, _ANY),
    ("user_sgpr_flat_scratch_init", 5, 1, (0, 11)),
    ("user_sgpr_private_segment_size", 6, 1, _ANY),
    ("wavefront_size32", 10, 1, (10, 99)),
    ("uses_dynamic_stack", 11, 1, _ANY),
)


@dataclass(frozen=True)
class Descriptor:
    """``entry`` is the start of the code, in bytes from the descriptor's own address."""

    entry: int
    wavefront: int
    directives: tuple[tuple[str, int], ...]


def read(content: bytes, gpu: AmdHardware) -> Descriptor:
    """Parse the descriptor in ``SIZE`` bytes."""
    lds, scratch, kernarg, _, entry, _, rsrc3, rsrc1, rsrc2, properties, preload, _ = (
        _LAYOUT.unpack(content)
    )
    directives = {
        "group_segment_fixed_size": lds,
        "private_segment_fixed_size": scratch,
        "kernarg_size": kernarg,
    }
    for value, fields in ((rsrc1, _RSRC1), (rsrc2, _RSRC2), (properties, _PROPERTIES)):
        for name, first, bits, (least, most) in fields:
            if least <= gpu.major <= most:
                directives[name] = value >> first & ((1 << bits) - 1)
    if gpu.major < 11 and not gpu.has_architected_flat_scratch:
        offset = "system_sgpr_private_segment_wavefront_offset"
        directives[offset] = directives.pop("enable_private_segment")
    if gpu.has_architected_flat_scratch:
        for name in ("user_sgpr_private_segment_buffer", "user_sgpr_flat_scratch_init"):
            del directives[name]
    wavefront = 32 if directives.get("wavefront_size32") else 64
    vgpr_granule = 8 if gpu.has_accumulation_registers or wavefront == 32 else 4
    directives["next_free_vgpr"] = _granules(rsrc1, 0, 6) * vgpr_granule
    directives["next_free_sgpr"] = _granules(rsrc1, 6, 4) * 8 if gpu.major < 10 else 106
    if gpu.has_accumulation_registers:
        directives["accum_offset"] = _granules(rsrc3, 0, 6) * 4
        directives["tg_split"] = rsrc3 >> 16 & 1
        directives["user_sgpr_kernarg_preload_length"] = preload & 0x7F
        directives["user_sgpr_kernarg_preload_offset"] = preload >> 7
    return Descriptor(entry, wavefront, tuple(directives.items()))


def _granules(register: int, first: int, bits: int) -> int:
    return (register >> first & ((1 << bits) - 1)) + 1
