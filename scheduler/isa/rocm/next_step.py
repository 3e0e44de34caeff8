"""The next step to a higher occupancy: what one more wave would take, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from scheduler.build.rocm.occupancy import Demand, Limiter, occupancy
from scheduler.isa.bisect import greatest_smaller
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
    now = occupancy(demand, target)
    if now.limiter in _AMOUNTS:
        name, one, many = _AMOUNTS[now.limiter]
        have: int = getattr(demand, name)

        def waves(count: int) -> int:
            changed: dict[str, Any] = {name: count}
            return occupancy(replace(demand, **changed), target).waves

        left = greatest_smaller(have, 1, now.waves, waves)
        if left is None:
            return None
        change, more = have - left, waves(left)
        text = f"{change} fewer {one if change == 1 else many}: {now.waves} → {more} waves"
        return NextStep(now.limiter, change, more, text)
    if now.limiter is Limiter.WORKGROUP:  # the nearest smaller block of whole waves
        first = (demand.workgroup - 1) // target.wavefront * target.wavefront
        for threads in range(first, 0, -target.wavefront):
            smallest = min(demand.smallest_workgroup, threads)
            smaller = replace(demand, workgroup=threads, smallest_workgroup=smallest)
            more = occupancy(smaller, target).waves
            if more > now.waves:
                text = f"blocks of {threads} threads: {now.waves} → {more} waves"
                return NextStep(now.limiter, demand.workgroup - threads, more, text)
    return None
