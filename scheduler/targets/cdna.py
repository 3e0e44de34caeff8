"""What the generations of CDNA have in common."""

from __future__ import annotations

from typing import Any

from scheduler.targets.amd import AmdHardware
from scheduler.targets.cycle_model import Constant, exact
from scheduler.targets.template_limits import TemplateLimits

_ISSUE = "ROCm Compute Profiler: each cycle one SIMD, round robin; CDNA ISA: 64 lanes on 16"
CYCLE_FIGURES: dict[str, Any] = {
    "simds": 4,
    "wave": 64,
    "l1_bytes": 32 << 10,
    "f64_conversions_double": True,
    "cadence": exact(4, "cycles", _ISSUE),
    "vector": exact(4, "cycles", _ISSUE),
    "vector_latency": exact(4, "cycles", "CDNA ISA: results are read by the next instruction"),
    "transcendental": exact(16, "cycles", "LLVM: WriteTrans32 has a quarter of the rate"),
    "double": exact(4, "cycles", "CDNA 2/3 white paper: FP64 vector at the rate of FP32"),
    "quarter": Constant(8, 16, 16, "cycles", "LLVM: WriteIntMul, WriteQuarterRate32"),
    "matrix_read": Constant(
        *(8, 12, 16, "cycles after the last pass until others can read the result"),
        "LLVM, GCNHazardRecognizer: passes + 2 to passes + 4 wait states of 4 cycles",
    ),
    "matrix_chain": Constant(
        *(0, 0, 8, "cycles after the last pass until it can be C of the next"),
        "CDNA ISA: none if C is exactly the result; 2 wait states if it overlaps",
    ),
    "scalar": exact(4, "cycles", _ISSUE),
    "branch": Constant(
        *(8, 16, 32, "cycles of its wave after a taken branch"),
        "Southern Islands ISA: 16 cycles, plus instruction fetch",
    ),
    "barrier": Constant(4, 16, 40, "cycles after the last wave's arrival", "estimate: a few slots"),
    "block_start": Constant(
        *(100, 300, 800, "cycles from a block's end to the first instruction of the next"),
        "estimate: the workgroup manager sets up registers; arguments and code are fetched",
    ),
    "lds_port": exact(
        64, "bytes per cycle and direction", "ROCm Compute Profiler: one port per pair of SIMDs"
    ),
    "lds_ports": 2,
    "lds_queue": Constant(*(64, 32, 16, "cycles of queued work"), "estimate: 2 to 4 reads"),
    "address": exact(
        *(4, "cycles per vector memory instruction"),
        "ROCm Compute Profiler: the address unit takes 16 lanes per cycle",
    ),
    "memory_queue": Constant(*(256, 128, 64, "cycles of queued work"), "estimate"),
    "launch_us": Constant(
        *(1.5, 3, 6, "microseconds between launches of empty kernels"),
        "estimate: ROCm issues report 2 to 6 us on Instinct boards",
    ),
}

# Of 512 registers; half of them lets two waves share a SIMD. Columns: from scheduler/cycles.
_LIMITS = TemplateLimits(
    gemm_registers=320,
    gemm_registers_by_waves=True,
    attention_registers=512,
    ample_attention_registers=256,
    attention_blocks_per_unit=4,
    attention_columns=128,
    estimates_attention=True,
)


def gpu(processor: str, *, lds_bytes: int = 65536, **facts: Any) -> AmdHardware:
    """Return a GPU with the registers and waves of every CDNA."""
    return AmdHardware(
        processor=processor,
        architecture="cdna",
        wavefront=64,
        vgprs_per_simd=512,
        vgpr_granule=8,
        max_waves_per_simd=8,
        simds_per_cu=4,
        lds_bytes=lds_bytes,
        max_lds_per_block_bytes=lds_bytes,
        major=9,
        sgprs_at_full_occupancy=100,  # of 800, in granules of 16, for 8 waves
        has_accumulation_registers=True,
        clears_upper_halves=True,
        buffers_check_by_stride=True,
        stores_count_as_loads=True,
        limits=_LIMITS,
        reads_ahead_in_order=True,
        **facts,
    )
