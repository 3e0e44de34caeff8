"""Definitions of a target and a board, for every maker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar

from scheduler.matrix_instructions import (
    COMMON_SIZE,
    MatrixInstruction,
    MatrixSet,
    instructions_of,
    select,
)
from scheduler.targets.gemm_costs import GemmCosts
from scheduler.targets.template_limits import TemplateLimits
from scheduler.targets.terms import GENERAL, Terms

KIB, MIB, GB = 1 << 10, 1 << 20, 10**9
_ENGINE = "engine"


def engine_fact(*, default: Any = MISSING) -> Any:
    """A field that only stages of the engine read: ``facts`` leaves it out, and it follows from the
    GPU's name, so that comparisons do too."""
    return field(default=default, compare=False, repr=False, metadata={_ENGINE: True})


@dataclass(frozen=True)
class HardwareFigure:
    """A hardware figure for tables: heading, unit, and the field that holds it."""

    heading: str
    unit: str
    field: str


@dataclass(frozen=True)
class Hardware:
    """Properties of every maker's hardware; a backend's subclass adds those of its maker.

    ``wavefront`` is the number of threads that run in lockstep (AMD: a wave, NVIDIA: a warp).
    """

    words: ClassVar[Terms] = GENERAL
    """The maker's terms for the parts."""

    figures: ClassVar[tuple[HardwareFigure, ...]] = ()
    """The figures that a table of the maker's targets shows, besides name and wavefront."""

    wavefront: int

    def facts(self) -> dict[str, Any]:
        """Return the properties for tables by name, in JSON's own types."""
        values = asdict(self)
        return {
            fact.name: values[fact.name] for fact in fields(self) if _ENGINE not in fact.metadata
        }


@dataclass(frozen=True, kw_only=True)
class HipHardware(Hardware):
    """A GPU of any maker that HIP sources are compiled for, with the properties that their
    templates use.

    ``processor`` is the compiler's name (gfx942, sm_90), ``architecture`` the generation whose
    rules are the same (cdna, rdna, ampere …); ``max_lds_per_block_bytes`` is the most shared memory
    that one block may request.
    """

    copies_asynchronously: ClassVar[bool] = False
    """Whether it copies to shared memory asynchronously (``kiln/copies.h``)."""

    processor: str
    architecture: str
    max_lds_per_block_bytes: int = 65536

    direct_load_bytes: int = engine_fact(default=0)
    """The most bytes that a lane loads into LDS without going through registers (LLVM:
    FeatureLDSDMAInsts, FeatureGFX950Insts); 0 if unsupported."""
    matrix_sets: tuple[MatrixSet, ...] = engine_fact(default=())
    has_wgmma: bool = engine_fact(default=False)
    """Whether four warps multiply together, asynchronously, from shared memory (``wgmma``)."""
    gemm_costs: GemmCosts = engine_fact(default=GemmCosts())
    """Costs in estimates of matrix products."""
    similar: str = engine_fact(default="")
    """The GPU whose board estimates use if this one has none."""
    limits: TemplateLimits = engine_fact(default=TemplateLimits())
    reads_ahead_in_order: bool = engine_fact(default=False)
    """Whether kernels prescribe the order in which a wave reads ahead (``kiln/mma.h``)."""
    partial_lines: float = engine_fact(default=0.0)
    """Share of a line that is fetched again if steps take the line in parts."""
    units_per_pair: int = engine_fact(default=1)
    """Compute units that share each other's blocks: 2 of an RDNA work-group processor."""

    @property
    def matrix(self) -> str:
        """The family of its matrix instructions: mfma (CDNA), wmma (RDNA3 and later), mma (NVIDIA)
        or ""."""
        return next((instruction.family for instruction in self.matrix_instructions), "")

    @property
    def matrix_instructions(self) -> tuple[MatrixInstruction, ...]:
        """Its matrix instructions, in the table's order."""
        return instructions_of(self.matrix_sets)

    def matrix_instruction(self, element: str, m: int = COMMON_SIZE) -> MatrixInstruction | None:
        """Return its instruction with ``m`` rows and the largest k; see ``select``."""
        return select(self.matrix_sets, element, m)

    @property
    def matrix_macro(self) -> str:
        """The macro by which headers know its matrix instructions."""
        return f"__{self.processor}__"

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "matrix": self.matrix}


@dataclass(frozen=True)
class Target:
    """One compilation target.

    ``backend`` names the row of the registry that serves it, ``family`` the generation of the
    hardware for display (cdna, rdna, cpu). An emulation has the hardware of what it ``emulates``.
    """

    name: str
    family: str
    backend: str
    hardware: Hardware
    emulates: str = ""

    @property
    def wavefront(self) -> int:
        """Threads that run in lockstep."""
        return self.hardware.wavefront

    @property
    def words(self) -> Terms:
        """The hardware maker's terms for the parts."""
        return self.hardware.words

    def facts(self) -> dict[str, Any]:
        """Return all properties by name, including the hardware's."""
        return {
            "name": self.name,
            "family": self.family,
            "backend": self.backend,
            **self.hardware.facts(),
            "emulates": self.emulates,
        }


def hip_hardware(target: Target) -> HipHardware:
    """Return the GPU that a target is or emulates. ``TypeError`` if it takes no HIP sources."""
    if not isinstance(target.hardware, HipHardware):
        raise TypeError(f"{target.name} does not support HIP sources")
    return target.hardware


def rates(**rates: int) -> Mapping[str, int]:
    """Operations per clock and compute unit by dtype."""
    return MappingProxyType(rates)


@dataclass(frozen=True)
class Board:
    """One product, for speed-of-light figures.

    ``vector`` and ``matrix`` are floating-point operations per clock and compute unit by dtype (an
    FMA counts as two); a missing dtype has no published rate. Bandwidth is in bytes per second,
    caches in bytes: ``l2_bytes`` and ``last_level_bytes`` (Infinity Cache; 0 without) of the whole
    device, ``instruction_cache_bytes`` of the compute units that share one. A device is what its
    runtime counts as one: of an MI250X one of its two dies.
    """

    name: str
    target: str
    compute_units: int
    clock_mhz: int  # peak engine clock
    memory_bytes_per_s: int
    l2_bytes: int
    last_level_bytes: int
    instruction_cache_bytes: int
    vector: Mapping[str, int]
    matrix: Mapping[str, int]
    sources: tuple[str, ...]

    def peak_flops(self, dtype: str, use_matrix: bool = True) -> float | None:
        """Return operations per second for a dtype (f64, f32, f16, bf16), on matrix cores if they
        support it; None if no rate is published. "tf32" (f32 that may be rounded) has the rates of
        f32 if the hardware has no tf32."""
        if dtype == "tf32" and dtype not in self.matrix:
            dtype = "f32"
        rate = self.matrix.get(dtype) if use_matrix else None
        rate = rate or self.vector.get(dtype)
        return None if rate is None else float(rate) * self.compute_units * self.clock_mhz * 1e6
