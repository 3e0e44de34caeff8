"""How many groups of threads a device holds at once: what a backend gives for its targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from scheduler.isa.hazards import Hazard
from scheduler.targets import Target
from scheduler.targets.registry import backend_of, load_part

Resources: TypeAlias = Mapping[str, Any]
"""What one device function takes, as the backend's recipe gives it."""


@dataclass(frozen=True)
class Column:
    """What a table shows of a function's resources: its heading, its unit, and the figures."""

    heading: str
    unit: str
    figures: tuple[str, ...]


class OccupancyRules(ABC):
    """One maker's rules. A wave is what runs in lockstep (NVIDIA: a warp), a SIMD what holds
    waves (NVIDIA: a partition of an SM)."""

    headings: ClassVar[Mapping[str, str]]
    """What a short table shows of a function's resources: the heading, and the figure's name."""

    columns: ClassVar[tuple[Column, ...]]
    """What a full one shows, beside waves, limit and next step."""

    waves_heading: ClassVar[tuple[str, str]]
    """What waves are called, and what holds them."""

    figures: ClassVar[type | None] = None
    """The dataclass whose fields a function's resources are; None where anything may be."""

    numbers: ClassVar[tuple[str, ...]]
    """The figures that are numbers and can be compared, the most telling first."""

    common: ClassVar[Mapping[str, str]] = {}
    """What can be compared with another maker's: the name that all share, and the figure's own.
    Bytes in the names; registers and scratch memory are of a thread, shared memory of a block."""

    @abstractmethod
    def max_waves(self, target: Target) -> int:
        """Waves that a SIMD can hold at most."""

    @abstractmethod
    def simds(self, target: Target) -> int:
        """SIMDs of a compute unit."""

    @abstractmethod
    def waves(self, resources: Resources) -> int:
        """Waves that a SIMD holds of a built function."""

    def comparable(self, resources: Resources, target: Target) -> Mapping[str, int]:
        """A built function's figures that other makers' have too, by the names that all share."""
        share = {"occupancy_percent": 100 * self.waves(resources) // self.max_waves(target)}
        own = {name: resources.get(figure) for name, figure in self.common.items()}
        return share | {name: value for name, value in own.items() if value is not None}

    @abstractmethod
    def waves_before_build(self, threads: int, shared_bytes: int, target: Target) -> float:
        """An estimate from a block's size and shared memory alone."""

    @abstractmethod
    def registers(self, resources: Resources) -> int:
        """Registers of a thread."""

    @abstractmethod
    def waves_by_registers(self, resources: Resources, target: Target) -> int:
        """Waves that a SIMD would hold of a built function if only a thread's registers
        limited them."""

    @abstractmethod
    def spills(self, resources: Resources) -> bool:
        """Whether a function keeps in memory what has no place in registers."""

    @abstractmethod
    def hazards(self, resources: Resources, target: Target) -> tuple[Hazard, ...]:
        """What is likely to cost time."""

    @abstractmethod
    def next_steps(
        self, listing: str, resources: Mapping[str, Resources], target: Target
    ) -> Mapping[str, str]:
        """For each device function of a build, by its listing and its functions' resources, what
        would let in one more wave; "" for nothing."""


def rules_of(target: Target) -> OccupancyRules | None:
    """The rules of the target's backend; None where nothing limits how much runs at once."""
    reference = backend_of(target).occupancy
    rules: OccupancyRules | None = load_part(reference) if reference else None
    return rules
