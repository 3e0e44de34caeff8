"""The state of waves and blocks that run on a unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.cycles.steps import Path, PreparedPath, Step


@dataclass(slots=True, eq=False)
class Wave:
    """A running wave. ``times`` are when its instructions issued (barriers: when all waves had
    arrived), so their number is its position; ``held`` lists which of them waited, until when and
    for what (of ``REASON_CODES``), ``arrived`` when it reached its barriers, ``own`` which waited
    for a pipe that it occupied itself; ``served``, on the timeline, when LDS and memory completed
    an access."""

    path: Path
    prepared: PreparedPath
    simd: int
    block: Block
    age: int
    free: list[float]
    owners: list[Wave | None]
    queues: list[Queue]
    started: float
    order: int = 0
    """Its priority: smaller values issue sooner."""
    counters: tuple[list[float], list[float], list[float], list[float]] = field(
        default_factory=lambda: ([], [], [], [])
    )
    times: list[float] = field(default_factory=list)
    held: list[tuple[int, float, int]] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)
    served: dict[int, float] | None = None
    ended: float = 0.0


Queue = list[tuple[int, int, Wave, Step]]


@dataclass(slots=True, eq=False)
class Block:
    """A running block, and how many blocks it represents."""

    number: int
    alive: int
    weight: float
    waiting: list[Wave] = field(default_factory=list)
    waves: list[Wave] = field(default_factory=list)
    ended: float = 0.0
