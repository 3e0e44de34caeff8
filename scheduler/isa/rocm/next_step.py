"""The next step to a higher occupancy: what one more wave would take, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from scheduler.build.rocm.occupancy import Demand, Limiter, occupancy
from scheduler.isa.bisect import greatest_amount_with_more_waves
from scheduler.targets import Target

# The field of ``Demand``, and its unit in the singular and in the plural.
_AMOUNTS = {
    Limiter.VGPR: ("vgpr", "VGPR", "VGPRs"),
    Limiter.SGPR: ("sgpr", "SGPR", "SGPRs"),
    Limiter.LDS: ("lds_bytes", "byte of LDS", "bytes of LDS"),
}


@dataclass(frozen=True)
class NextStep:
    """A change that gives more waves: ``text`` reads ``12 fewer VGPRs: 5 → 6 waves``."""

    limiter: Limiter
    change: int
    waves: int
    text: str


def next_step(demand: Demand, target: Target) -> NextStep | None:
    """Return the smallest change of the limiting resource alone that admits more waves.

    None when the hardware's maximum is reached, or when no change of one resource helps.
    """
    current = occupancy(demand, target)
    if current.limiter in _AMOUNTS:
        field, singular, plural = _AMOUNTS[current.limiter]
        used: int = getattr(demand, field)

        def waves(count: int) -> int:
            changed: dict[str, Any] = {field: count}
            return occupancy(replace(demand, **changed), target).waves

        reduced_amount = greatest_amount_with_more_waves(used, 1, current.waves, waves)
        if reduced_amount is None:
            return None
        change, new_waves = used - reduced_amount, waves(reduced_amount)
        unit = singular if change == 1 else plural
        text = f"{change} fewer {unit}: {current.waves} → {new_waves} waves"
        return NextStep(current.limiter, change, new_waves, text)
    if current.limiter is Limiter.WORKGROUP:  # the nearest smaller block of whole waves
        first = (demand.workgroup - 1) // target.wavefront * target.wavefront
        for threads in range(first, 0, -target.wavefront):
            smallest = min(demand.smallest_workgroup, threads)
            smaller_demand = replace(demand, workgroup=threads, smallest_workgroup=smallest)
            new_waves = occupancy(smaller_demand, target).waves
            if new_waves > current.waves:
                text = f"blocks of {threads} threads: {current.waves} → {new_waves} waves"
                return NextStep(current.limiter, demand.workgroup - threads, new_waves, text)
    return None
