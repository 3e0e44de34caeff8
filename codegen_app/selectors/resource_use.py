"""What a build takes of a thread and of a device, in two figures that tables sort by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import targets
from scheduler.isa.occupancy import rules_of


@dataclass(frozen=True)
class ResourceUse:
    """Of the device function that takes the most registers: registers of a thread, and waves that a
    SIMD holds of those that it can hold; ``limiter`` keeps the next one out."""

    target: str
    registers: int
    waves: int
    max_waves: int
    limiter: str
    spills: bool

    @property
    def occupancy_percent(self) -> float:
        """Waves of those that could be."""
        return 100 * self.waves / self.max_waves

    @property
    def words(self) -> str:
        """``2 of 8``."""
        return f"{self.waves} of {self.max_waves}"


def resource_use(resources: Mapping[str, Mapping[str, Any]], target: str) -> ResourceUse | None:
    """Of a build's resources; None where its target's compiler gives none."""
    found = targets.find(target)
    rules = rules_of(found)
    if rules is None or not resources:
        return None
    largest = max(resources.values(), key=rules.registers)
    return ResourceUse(
        target=target,
        registers=rules.registers(largest),
        waves=rules.waves(largest),
        max_waves=rules.max_waves(found),
        limiter=str(largest.get("limiter", "")),
        spills=rules.spills(largest),
    )
