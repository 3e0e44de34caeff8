"""How many groups of threads a device runs at once: the interface of a backend's rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from scheduler.isa.hazards import Hazard
from scheduler.targets import Target
from scheduler.targets.registry import backend_of, load_part

Resources: TypeAlias = Mapping[str, Any]
"""The resources of one device function, as the backend's recipe gives them."""


@dataclass(frozen=True)
class Column:
    """A table column for a function's resources: its heading, its unit, and the figures."""

    heading: str
    unit: str
    figures: tuple[str, ...]


class OccupancyRules(ABC):
    """One maker's rules. A wave runs in lockstep (NVIDIA: a warp), a SIMD holds waves (NVIDIA: a
    partition of an SM)."""

    headings: ClassVar[Mapping[str, str]]
    """The columns of a short table of a function's resources: the heading, and the figure's
    name."""

    columns: ClassVar[tuple[Column, ...]]
    """The columns of a full table, besides waves, limit and next step."""

    waves_heading: ClassVar[tuple[str, str]]
    """The names of waves, and of what holds them."""

    figures: ClassVar[type | None] = None
    """The dataclass of a function's resources; None if they may have any fields."""

    numbers: ClassVar[tuple[str, ...]]
    """The numeric figures that can be compared, the most informative first."""

    common: ClassVar[Mapping[str, str]] = {}
    """Figures comparable with another maker's: the common name, and the figure's own. Bytes in the
    names; registers and scratch memory are per thread, shared memory per block."""

    @abstractmethod
    def max_waves(self, target: Target) -> int:
        """Return the most waves that a SIMD can hold."""

    @abstractmethod
    def simds(self, target: Target) -> int:
        """Return the number of SIMDs of a compute unit."""

    @abstractmethod
    def waves(self, resources: Resources) -> int:
        """Return the waves of a built function that a SIMD holds."""

    def comparable(self, resources: Resources, target: Target) -> Mapping[str, int]:
        """Return a built function's figures that other makers also have, by their common names."""
        share = {"occupancy_percent": 100 * self.waves(resources) // self.max_waves(target)}
        own = {name: resources.get(figure) for name, figure in self.common.items()}
        return share | {name: value for name, value in own.items() if value is not None}

    @abstractmethod
    def waves_before_build(self, threads: int, shared_bytes: int, target: Target) -> float:
        """Estimate the waves from a block's size and shared memory alone."""

    @abstractmethod
    def registers(self, resources: Resources) -> int:
        """Return the registers of a thread."""

    @abstractmethod
    def waves_by_registers(self, resources: Resources, target: Target) -> int:
        """Return the waves of a built function that a SIMD would hold if only registers limited
        them."""

    @abstractmethod
    def spills(self, resources: Resources) -> bool:
        """Whether a function spills registers to memory."""

    @abstractmethod
    def hazards(self, resources: Resources, target: Target) -> tuple[Hazard, ...]:
        """Return the performance hazards."""

    @abstractmethod
    def next_steps(
        self, listing: str, resources: Mapping[str, Resources], target: Target
    ) -> Mapping[str, str]:
        """Return, for each device function of a build, what would admit one more wave, from its
        listing and the functions' resources; "" for nothing."""


def rules_of(target: Target) -> OccupancyRules | None:
    """Return the rules of the target's backend; None if nothing limits how much runs at once."""
    reference = backend_of(target).occupancy
    rules: OccupancyRules | None = load_part(reference) if reference else None
    return rules
