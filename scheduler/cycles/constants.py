"""What the model knows of the hardware: each figure with its unit, its range and its source.

A figure that one document states is exact; one that was measured, or on which sources differ, has a
range. ``machine`` gives the figures of a target, ``Machine.at`` those of one end of the ranges: the
fast ends together, the middles, the slow ends. Nothing here is fitted to a kernel.

Sources, as the rows name them:

* *CDNA ISA*, *RDNA ISA*: AMD's instruction set architecture documents of CDNA 2 to 4, RDNA 3 and 4.
* *Southern Islands ISA*: AMD's "Southern Islands Series Instruction Set Architecture" (2012).
* *CDNA 2/3/4 white paper*, *RDNA white paper*: AMD's white papers of those architectures.
* *ROCm Compute Profiler*: its documentation, "Pipeline descriptions", "Local data share", "Vector
  L1 cache", "L2 cache" (rocm.docs.amd.com/projects/rocprofiler-compute).
* *Matrix instruction calculator*: github.com/ROCm/amd_matrix_instruction_calculator.
* *IREE guide*: "AMDGPU Kernel Optimization Guide" and its "Empirical LDS measurements"
  (github.com/nod-ai/amd-shark-ai, docs/), measured on MI300X, MI350X, W7900, RX 9070 XT.
* *HipKittens*: github.com/HazyResearch/HipKittens, analysis/paper_experiments/phases (MI355X), and
  the paper, arXiv 2511.08083.
* *pyhip*: github.com/tingqli/pyhip, docs/mem_latency.md, measured on MI308X.
* *Chips and Cheese*: "Testing AMD's Giant MI300X" (2024), "AMD's CDNA 3 Compute Architecture"
  (2023), "Microbenchmarking AMD's RDNA 3 Graphics Architecture" (2023), "Latency Testing is Hard"
  (2023), "RDNA 4" (2025).
* *The MALL is Open*: Tee, Curtis, Wolfe, Wong, SC25 workshops: latencies of CDNA 2 and 3.
* *LLVM*: SISchedule.td and GCNHazardRecognizer.cpp of LLVM 22.
* *AMD's achievable rates*: "Measuring Max-Achievable FLOPs" (rocm.blogs.amd.com, 2025).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, TypeVar

from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware

Value = TypeVar("Value")


class End(StrEnum):
    """The end of the ranges."""

    FAST = "fast"
    MID = "mid"
    SLOW = "slow"


@dataclass(frozen=True)
class Constant:
    """A figure at its fast end (fast kernels), in the middle, and at its slow end."""

    fast: float
    mid: float
    slow: float
    unit: str
    source: str

    def at(self, end: End) -> float:
        return {End.FAST: self.fast, End.MID: self.mid, End.SLOW: self.slow}[end]


def _exact(value: float, unit: str, source: str) -> Constant:
    return Constant(value, value, value, unit, source)


@dataclass(frozen=True)
class Properties(Generic[Value]):
    """The properties of a target, each figure as a ``Value``.

    Cycles are those of the compute unit's clock; "a wave" has the target's width.

    Issue: a SIMD considers its waves every ``cadence`` cycles and takes at most one instruction per
    wave and one per pipe. Pipes: ``vector`` and so on are the cycles for which one instruction
    occupies its pipe; ``..._latency`` are those until its result may be read.
    """

    simds: int
    wave: int
    lds_banks: int
    """Banks that one access reads at a time; 128-bit writes always use 32."""
    line: int
    """Bytes of a line that L1 and L2 exchange."""
    xcds: int
    """Separate L2 caches on the board's device."""
    l1_bytes: int
    instruction_line: int

    cadence: Value
    vector: Value
    vector_latency: Value
    transcendental: Value
    double: Value
    quarter: Value
    matrix_read: Value
    matrix_chain: Value
    scalar: Value
    branch: Value
    barrier: Value
    block_start: Value

    lds_latency: Value
    lds_port: Value
    lds_ports: int
    lds_queue: Value

    address: Value
    l1_bytes_cycle: Value
    l1_latency: Value
    l2_bytes_cycle: Value
    l2_latency: Value
    memory_latency: Value
    memory_queue: Value
    memory_share: Value
    last_level_bytes_s: Value
    scalar_latency: Value
    fetch_latency: Value
    fetch_ahead: Value
    launch_us: Value
    matrix_clock: Value


@dataclass(frozen=True)
class Machine(Properties[Constant]):
    """One target, each figure with its range and source."""

    def at(self, end: End) -> Rates:
        """Return all figures of one end, as plain numbers."""
        values: dict[str, Any] = {
            each.name: value.at(end) if isinstance(value, Constant) else value
            for each in fields(self)
            for value in [getattr(self, each.name)]
        }
        return Rates(**values)

    def constants(self) -> dict[str, Constant]:
        """Return the figures with a source of their own, by name, for documents."""
        return {
            each.name: value
            for each in fields(self)
            for value in [getattr(self, each.name)]
            if isinstance(value, Constant)
        }


@dataclass(frozen=True)
class Rates(Properties[float]):
    """A machine's figures at one end of their ranges. ``units`` compute units act as one (RDNA: a
    work-group processor has two)."""

    units: int = 1

    @property
    def paired(self) -> Rates:
        """Two compute units whose waves share their LDS: one block may have waves on both."""
        return replace(
            self,
            simds=2 * self.simds,
            lds_ports=2 * self.lds_ports,
            l1_bytes=2 * self.l1_bytes,
            l2_bytes_cycle=2 * self.l2_bytes_cycle,
            units=2 * self.units,
        )


# Common to the targets of an architecture.
_ISSUE = "ROCm Compute Profiler: each cycle one SIMD, round robin; CDNA ISA: 64 lanes on 16"
_CDNA = {
    "simds": 4,
    "wave": 64,
    "l1_bytes": 32 << 10,
    "cadence": _exact(4, "cycles", _ISSUE),
    "vector": _exact(4, "cycles", _ISSUE),
    "vector_latency": _exact(4, "cycles", "CDNA ISA: results are read by the next instruction"),
    "transcendental": _exact(16, "cycles", "LLVM: WriteTrans32 has a quarter of the rate"),
    "double": _exact(4, "cycles", "CDNA 2/3 white paper: FP64 vector at the rate of FP32"),
    "quarter": Constant(8, 16, 16, "cycles", "LLVM: WriteIntMul, WriteQuarterRate32"),
    "matrix_read": Constant(
        *(8, 12, 16, "cycles after the last pass until others can read the result"),
        "LLVM, GCNHazardRecognizer: passes + 2 to passes + 4 wait states of 4 cycles",
    ),
    "matrix_chain": Constant(
        *(0, 0, 8, "cycles after the last pass until it can be C of the next"),
        "CDNA ISA: none if C is exactly the result; 2 wait states if it overlaps",
    ),
    "scalar": _exact(4, "cycles", _ISSUE),
    "branch": Constant(
        *(8, 16, 32, "cycles of its wave after a taken branch"),
        "Southern Islands ISA: 16 cycles, plus instruction fetch",
    ),
    "barrier": Constant(4, 16, 40, "cycles after the last wave's arrival", "estimate: a few slots"),
    "block_start": Constant(
        *(100, 300, 800, "cycles from a block's end to the first instruction of the next"),
        "estimate: the workgroup manager sets up registers; arguments and code are fetched",
    ),
    "lds_port": _exact(
        64, "bytes per cycle and direction", "ROCm Compute Profiler: one port per pair of SIMDs"
    ),
    "lds_ports": 2,
    "lds_queue": Constant(*(64, 32, 16, "cycles of queued work"), "estimate: 2 to 4 reads"),
    "address": _exact(
        *(4, "cycles per vector memory instruction"),
        "ROCm Compute Profiler: the address unit takes 16 lanes per cycle",
    ),
    "memory_queue": Constant(*(256, 128, 64, "cycles of queued work"), "estimate"),
    "launch_us": Constant(
        *(1.5, 3, 6, "microseconds between launches of empty kernels"),
        "estimate: ROCm issues report 2 to 6 us on Instinct boards",
    ),
}
_MI300_LATENCY = "pyhip: 500 to 800 for HBM; The MALL is Open; Chips and Cheese"
_CDNA3 = {
    **_CDNA,
    "line": 128,
    "xcds": 8,
    "instruction_line": 128,
    "lds_banks": 32,
    "lds_latency": Constant(
        *(32, 40, 64, "cycles, excluding ports and banks"),
        "pyhip: 52 for 32 bits, 64 for 128 bits from issue to the wait's end; LLVM: WriteLDS",
    ),
    "l1_bytes_cycle": _exact(64, "bytes per cycle", "ROCm Compute Profiler: vL1D, 64 B per cycle"),
    "l1_latency": Constant(110, 125, 150, "cycles", "Chips and Cheese: MI300X, vector L1"),
    "l2_bytes_cycle": _exact(
        2048 / 38,
        "bytes per cycle and CU",
        "CDNA 3 white paper: 2 KB per cycle for an XCD's 38 CUs",
    ),
    "l2_latency": Constant(200, 254, 350, "cycles", _MI300_LATENCY),
    "memory_latency": Constant(500, 700, 1000, "cycles", _MI300_LATENCY),
    "memory_share": Constant(
        *(0.90, 0.81, 0.70, "of the published bandwidth"),
        "estimate: streaming kernels on MI300X are reported at 4.0 to 4.8 of 5.3 TB/s, mostly 4.3",
    ),
    "last_level_bytes_s": Constant(
        *(17.2e12, 14e12, 11.9e12, "bytes per second"),
        "CDNA 3 white paper: 17.2 TB/s peak; Chips and Cheese: 11.9 TB/s measured",
    ),
    "scalar_latency": Constant(
        100, 150, 300, "cycles", "The MALL is Open: scalar L1, backed by L2"
    ),
    "fetch_latency": Constant(150, 254, 400, "cycles", "estimate: as L2, the source of the lines"),
    "fetch_ahead": Constant(3, 2, 1, "lines of code prefetched", "estimate"),
    "matrix_clock": Constant(
        *(1.0, 1.0, 0.6, "of the peak clock while the matrix pipes are busy"),
        "AMD's achievable rates: MI300X sustains 1.2 to 1.4 of 2.1 GHz in large products",
    ),
}
_CDNA4 = {
    **_CDNA3,
    "lds_banks": 64,
    "lds_port": _exact(
        *(128, "bytes per cycle and direction"),
        "CDNA 4 white paper: twice CDNA 3's LDS read bandwidth; IREE guide: 256 B per cycle",
    ),
    "l2_bytes_cycle": _exact(
        2048 / 32, "bytes per cycle and CU", "CDNA 4 white paper: 32 CUs per XCD"
    ),
    "memory_share": Constant(
        *(0.90, 0.81, 0.70, "of the published bandwidth"), "estimate: as CDNA 3, with HBM3E"
    ),
    "matrix_clock": Constant(
        *(1.0, 1.0, 0.65, "of the peak clock while the matrix pipes are busy"),
        "AMD's achievable rates; HipKittens: 1.6 of 2.5 PFLOP/s in bf16 on MI355X",
    ),
}
_CDNA2 = {
    **_CDNA3,
    "line": 64,  # ROCm Compute Profiler, vL1D: 64 B on MI200, 128 B on MI300
    "xcds": 1,
    "instruction_line": 64,
    "l1_bytes": 16 << 10,
    "l2_bytes_cycle": _exact(
        *(4096 / 110, "bytes per cycle and CU"),
        "CDNA 2 white paper: 128 B per cycle from each of 32 channels of a die",
    ),
    "l2_latency": Constant(180, 230, 320, "cycles", "The MALL is Open: MI250X"),
    "memory_latency": Constant(450, 620, 900, "cycles", "The MALL is Open: MI250X, no MALL"),
    "memory_share": Constant(
        *(0.88, 0.80, 0.70, "of the published bandwidth"),
        "estimate: BabelStream on MI250X, 1.3 of 1.6",
    ),
    "last_level_bytes_s": _exact(0, "bytes per second", "CDNA 2 white paper: no cache after L2"),
    "matrix_clock": Constant(
        *(1.0, 1.0, 0.85, "of the peak clock while the matrix pipes are busy"),
        "estimate: large products lower the clock of CDNA 2 less than of CDNA 3",
    ),
}

_RDNA_ISSUE = "RDNA ISA: 32 lanes in one cycle; one instruction per wave and cycle"
_RDNA3 = {
    "simds": 2,
    "wave": 32,
    "lds_banks": 32,
    "line": 128,
    "xcds": 1,
    "l1_bytes": 32 << 10,
    "instruction_line": 128,
    "cadence": _exact(1, "cycles", _RDNA_ISSUE),
    "vector": _exact(1, "cycles", _RDNA_ISSUE),
    "vector_latency": Constant(5, 5, 6, "cycles", "LLVM: GFX11SpeedModel, Write32Bit has 5"),
    "transcendental": _exact(4, "cycles", "RDNA ISA: 8 lanes per cycle; LLVM: WriteTrans32"),
    "double": Constant(16, 32, 32, "cycles", "estimate: a 16th to a 32nd of FP32"),
    "quarter": _exact(4, "cycles", "LLVM: WriteIntMul of GFX11SpeedModel"),
    "matrix_read": Constant(4, 8, 16, "cycles", "estimate: LLVM has hazards of WMMA, no cycles"),
    "matrix_chain": Constant(0, 0, 8, "cycles", "estimate, as CDNA"),
    "scalar": _exact(1, "cycles", _RDNA_ISSUE),
    "branch": Constant(8, 16, 32, "cycles", "LLVM: WriteBranch has 32 in GFX11SpeedModel"),
    "barrier": Constant(4, 16, 40, "cycles", "estimate"),
    "block_start": Constant(100, 300, 800, "cycles", "estimate"),
    "lds_latency": Constant(20, 30, 50, "cycles", "LLVM: WriteLDS has 20; Chips and Cheese"),
    "lds_port": _exact(128, "bytes per cycle", "RDNA ISA: 32 banks of 4 bytes for two SIMDs"),
    "lds_ports": 1,
    "lds_queue": Constant(64, 32, 16, "cycles", "estimate"),
    "address": _exact(1, "cycles", "RDNA ISA: addresses of 32 lanes per cycle"),
    "l1_bytes_cycle": _exact(128, "bytes per cycle", "RDNA white paper: one 128 B line per cycle"),
    "l1_latency": Constant(90, 110, 140, "cycles", "Chips and Cheese: RDNA 3, vector L0"),
    "l2_bytes_cycle": _exact(
        *(64, "bytes per cycle and CU"), "RDNA white paper: 64 B per cycle from L1 to L2"
    ),
    "l2_latency": Constant(230, 270, 340, "cycles", "Chips and Cheese: RDNA 3"),
    "memory_latency": Constant(500, 650, 950, "cycles", "Chips and Cheese: RDNA 3, VRAM"),
    "memory_queue": Constant(256, 128, 64, "cycles", "estimate"),
    "memory_share": Constant(
        *(0.92, 0.85, 0.75, "of the published bandwidth"), "Chips and Cheese: RDNA 3, VRAM"
    ),
    "last_level_bytes_s": Constant(
        *(3.5e12, 2.7e12, 2.2e12, "bytes per second"), "AMD: 3.5 TB/s peak; Chips and Cheese: 2.7"
    ),
    "scalar_latency": Constant(30, 50, 200, "cycles", "Chips and Cheese: RDNA 3, scalar cache"),
    "fetch_latency": Constant(150, 270, 400, "cycles", "estimate: as L2"),
    "fetch_ahead": Constant(
        *(3, 3, 1, "lines of code prefetched"), "RDNA ISA: S_INST_PREFETCH, up to 3 lines"
    ),
    "launch_us": Constant(3, 6, 12, "microseconds", "estimate: as Instinct boards, twice"),
    "matrix_clock": Constant(1.0, 1.0, 0.85, "of the peak clock", "estimate: board power"),
}
_RDNA4 = {
    **_RDNA3,
    "l1_latency": Constant(80, 100, 130, "cycles", "Chips and Cheese: RDNA 4"),
    "l2_latency": Constant(220, 260, 330, "cycles", "Chips and Cheese: RDNA 4"),
    "last_level_bytes_s": Constant(
        *(4.0e12, 3.0e12, 2.4e12, "bytes per second"), "Chips and Cheese: RDNA 4, Infinity Cache"
    ),
}

_MACHINES = {
    "gfx90a": Machine(**_CDNA2),  # type: ignore[arg-type] # the fields by name
    "gfx942": Machine(**_CDNA3),  # type: ignore[arg-type]
    "gfx950": Machine(**_CDNA4),  # type: ignore[arg-type]
    "gfx1100": Machine(**_RDNA3),  # type: ignore[arg-type]
    "gfx1201": Machine(**_RDNA4),  # type: ignore[arg-type]
}
TARGETS: tuple[str, ...] = tuple(_MACHINES)
"""The targets that the model supports."""


@lru_cache(maxsize=32)
def machine(target: Target) -> Machine:
    """Return the figures of a target. ``KeyError`` if the model does not support it."""
    return _MACHINES[amd_hardware(target).processor]
