"""A build's use of registers and waves, as two figures that tables sort by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import targets
from scheduler.isa.occupancy import rules_of


@dataclass(frozen=True)
class ResourceUse:
    """The use of the device function with the most registers: registers per thread, and waves per
    SIMD out of the possible ones; ``limiter`` is what prevents one more wave."""

    target: str
    registers: int
    waves: int
    max_waves: int
    limiter: str
    spills: bool

    @property
    def occupancy_percent(self) -> float:
        """Resident waves as a share of the possible ones."""
        return 100 * self.waves / self.max_waves

    @property
    def words(self) -> str:
        """``2 of 8``."""
        return f"{self.waves} of {self.max_waves}"


def resource_use(resources: Mapping[str, Mapping[str, Any]], target: str) -> ResourceUse | None:
    """Return the use from a build's resources; None if the target's compiler reports none."""
    description = targets.find(target)
    rules = rules_of(description)
    if rules is None or not resources:
        return None
    largest = max(resources.values(), key=rules.registers)
    return ResourceUse(
        target=target,
        registers=rules.registers(largest),
        waves=rules.waves(largest),
        max_waves=rules.max_waves(description),
        limiter=str(largest.get("limiter", "")),
        spills=rules.spills(largest),
    )
