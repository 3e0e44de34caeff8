"""What the cycle model knows of a GPU: each figure with its unit, its range and its source.

A figure that one document states is exact; one that was measured, or on which sources differ, has a
range. The figures stand in the files of the generations; ``Machine.at`` gives those of one end of
the ranges: the fast ends together, the middles, the slow ends. No figure is fitted to a kernel.

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

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Groups = tuple[tuple[int, ...], ...]
"""Lanes of a wave whose accesses to LDS are served together."""


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


def quads(*firsts: int) -> tuple[int, ...]:
    """Return four consecutive lanes from each of the first ones."""
    return tuple(first + lane for first in firsts for lane in range(4))


def both_halves(half: Groups) -> Groups:
    """Return the groups of lanes 0 to 31, and those of 32 to 63 in the same way."""
    return half + tuple(tuple(32 + lane for lane in group) for group in half)


def pipe_rates(matrix: Mapping[str, int], **narrow: int) -> tuple[tuple[str, int], ...]:
    """Return the rates of the matrix pipes by element, from a board's; 8 bits: integers and floats
    alike. ``narrow`` adds those that no board lists (``bits4`` ...)."""
    names = {"i8": "8", "tf32": "xf32"}
    rates = {names.get(name, name): rate for name, rate in matrix.items() if name[:2] != "f8"}
    return (*rates.items(), *((name.removeprefix("bits"), rate) for name, rate in narrow.items()))


def exact(value: float, unit: str, source: str) -> Constant:
    return Constant(value, value, value, unit, source)


@dataclass(frozen=True)
class Properties(Generic[Value]):
    """The properties of a target, each figure as a ``Value``.

    Cycles are those of the compute unit's clock; "a wave" has the target's width.

    Issue: a SIMD considers its waves every ``cadence`` cycles and takes at most one instruction per
    wave and one per pipe. Pipes: ``vector`` and so on are the cycles for which one instruction
    occupies its pipe; ``..._latency`` are those until its result may be read.
    """

    lds_banks: int
    """Banks that one access reads at a time; 96-bit reads and all writes use 32."""
    b96_groups: Groups
    """Groups of lanes of a 96-bit read; (): consecutive lanes."""
    b128_groups: Groups
    """The same of a 128-bit read."""
    matrix_rates: tuple[tuple[str, int], ...]
    """Operations of matrix instructions per clock and compute unit, by element; 8, 6 and 4: any
    element of that many bits."""
    f64_conversions_double: bool
    """Whether conversions and comparisons of f64 have the rate of f64 arithmetic."""
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

    def at(self, end: End, *, simds: int, wave: int) -> Rates:
        """Return all figures of one end, as plain numbers, for a compute unit of so many SIMDs."""
        values: dict[str, Any] = {
            field.name: value.at(end) if isinstance(value, Constant) else value
            for field in fields(self)
            for value in [getattr(self, field.name)]
        }
        return Rates(**values, simds=simds, wave=wave)

    def constants(self) -> dict[str, Constant]:
        """Return the figures with a source of their own, by name, for documents."""
        return {
            field.name: value
            for field in fields(self)
            for value in [getattr(self, field.name)]
            if isinstance(value, Constant)
        }


@dataclass(frozen=True)
class Rates(Properties[float]):
    """A machine's figures at one end of their ranges. ``units`` compute units with ``simds`` SIMDs
    act as one (RDNA: a work-group processor has two); ``wave`` is the lanes of a wave."""

    simds: int
    wave: int
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
