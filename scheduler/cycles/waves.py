"""Waves and blocks on their way through a unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.cycles.steps import Path, PreparedPath, Step


@dataclass(slots=True, eq=False)
class Wave:
    """A wave on its way. ``times`` are when its instructions issued (barriers: when all were
    there), so that their count is its position; ``held`` which of them had to wait until when and
    for what (of ``CODES``), ``arrived`` when it came to its barriers, ``own`` which waited for a
    pipe that it kept itself; ``served`` on the timeline when LDS and memory were done with one."""

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
    """The less, the sooner: its priority."""
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
    """Blocks that run, and how many each stands for."""

    number: int
    alive: int
    weight: float
    waiting: list[Wave] = field(default_factory=list)
    waves: list[Wave] = field(default_factory=list)
    ended: float = 0.0
