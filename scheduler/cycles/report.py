"""The model's report on a kernel: modelled, never measured. Stored as JSON in bundles, rows and
pages.

Times are in microseconds, cycles are those of the compute unit's clock. A figure that depends on a
constant with a range is a ``Band``; shares are of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

VERSION = 6


@dataclass(frozen=True)
class Band:
    """A figure at the constants' low ends, at their middle, and at their high ends."""

    low: float
    mid: float
    high: float


class Pipe(StrEnum):
    """The part of a compute unit that an instruction occupies."""

    MATRIX = "matrix"
    VECTOR = "vector"
    SCALAR = "scalar"
    LDS = "lds"
    MEMORY = "memory"  # the vector memory path: addresses, L1
    BRANCH = "branch"


class StallReason(StrEnum):
    """What a wave waits for."""

    GLOBAL = "global loads"
    STORE = "stores"
    SCALAR = "scalar loads"
    LDS = "LDS"
    MATRIX = "results of matrix instructions"
    DEPENDENCY = "results of the vector unit"
    BARRIER = "barriers"
    PIPE = "a pipe that other waves keep busy"
    FETCH = "instructions"


@dataclass(frozen=True)
class InstructionFigures:
    """One instruction, by its index in the function: means over the waves that were run.

    ``executed`` is how often a wave executes it, ``lanes`` how many of its lanes are active;
    ``issue`` the cycles for which it occupies its pipe, ``stall`` those its wave waits before it,
    by ``reasons``. For LDS, ``conflict`` is its cycles over those without bank conflicts (1 if
    there are none). For memory, ``requests`` is cache lines per execution; ``bytes_used`` of their
    ``bytes_moved`` are used.
    """

    index: int
    executed: float
    lanes: float
    issue: float
    stall: float
    reasons: Mapping[StallReason, float] = field(default_factory=dict)
    conflict: float | None = None
    requests: float | None = None
    bytes_used: float | None = None
    bytes_moved: float | None = None


@dataclass(frozen=True)
class LoopFigures:
    """A loop by its first and last instruction: its iterations per wave, the cycles per iteration
    on a full compute unit, and the share of them in which the matrix pipes are busy."""

    first: int
    last: int
    iterations: float
    cycles: float
    matrix_busy: float


@dataclass(frozen=True)
class ResourceLimit:
    """The least time that one resource alone needs for the whole launch."""

    name: str
    time_us: Band
    detail: str = ""


@dataclass(frozen=True)
class Span:
    """A span of a wave's timeline: from cycle ``start`` to ``end`` it occupies a pipe, or waits for
    a reason, at the instruction ``index``."""

    start: int
    end: int
    index: int
    pipe: Pipe | None = None
    reason: StallReason | None = None


@dataclass(frozen=True)
class Lane:
    """One wave of the timeline."""

    block: int
    wave: int
    simd: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Sharing:
    """Memory traffic behind the L1 caches for the whole launch, in bytes: requested by blocks,
    distinct (compulsory), and fetched by L2 when concurrent blocks share lines; and how many L2
    caches (XCDs) fetch separately."""

    asked: float
    distinct: float
    fetched: Band
    caches: int


@dataclass(frozen=True)
class LaunchReport:
    """One launch. ``rounds`` is the number of waves of blocks on the device, ``resident`` the
    blocks per compute unit at a time, ``tail`` the share of the time in which units are idle.

    ``cut``: the emulator's limits ended some of the run waves, and the figures cover what they did
    until then. ``notes`` say so too, and what else a reader should know.
    """

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    waves: int
    resident: int
    limiter: str
    rounds: float
    tail: float
    time_us: Band
    cycles: Band
    pipes: Mapping[Pipe, float]
    waits: Mapping[StallReason, float]
    limits: tuple[ResourceLimit, ...]
    instructions: tuple[InstructionFigures, ...]
    loops: tuple[LoopFigures, ...]
    timeline: tuple[Lane, ...]
    sharing: Sharing | None
    sentence: str
    notes: tuple[str, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Report:
    """A kernel on one board at one binding of its sizes. ``unknown`` counts, by mnemonic, the
    instructions that the emulator does not know; ``sampled`` says which part of the launch was
    run."""

    version: int
    kernel: str
    target: str
    board: str
    sizes: Mapping[str, int]
    time_us: Band
    sentence: str
    launches: tuple[LaunchReport, ...]
    unknown: Mapping[str, int]
    sampled: str
