"""The next step to a higher occupancy: what one more wave would take, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.build.rocm.occupancy import Demand, Limiter, Occupancy, occupancy
from scheduler.isa.bisect import greatest_smaller
from scheduler.targets import Target


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
    if now.limiter is Limiter.VGPR:
        return _fewer(demand.vgpr, lambda n: replace(demand, vgpr=n), "VGPR", target, now)
    if now.limiter is Limiter.SGPR:
        return _fewer(demand.sgpr, lambda n: replace(demand, sgpr=n), "SGPR", target, now)
    if now.limiter is Limiter.LDS:
        return _fewer(demand.lds_bytes, lambda n: replace(demand, lds_bytes=n), "", target, now)
    if now.limiter is Limiter.WORKGROUP:
        return _other_block(demand, target, now)
    return None


def _fewer(
    have: int, asking: Callable[[int], Demand], unit: str, target: Target, now: Occupancy
) -> NextStep | None:
    def waves(count: int) -> int:
        return occupancy(asking(count), target).waves

    low = greatest_smaller(have, 1, now.waves, waves)
    if low is None:
        return None
    change = have - low
    plural = "" if change == 1 else "s"
    what = f"{unit}{plural}" if unit else f"byte{plural} of LDS"
    text = f"{change} fewer {what}: {now.waves} → {waves(low)} waves"
    return NextStep(now.limiter, change, waves(low), text)


def _other_block(demand: Demand, target: Target, now: Occupancy) -> NextStep | None:
    """Return the nearest smaller block of whole waves with which more waves fit."""
    for threads in range(demand.workgroup - 1, 0, -1):
        if threads % target.wavefront:
            continue
        smaller = min(demand.smallest_workgroup, threads)
        held = occupancy(replace(demand, workgroup=threads, smallest_workgroup=smaller), target)
        if held.waves > now.waves:
            change = demand.workgroup - threads
            text = f"blocks of {threads} threads: {now.waves} → {held.waves} waves"
            return NextStep(Limiter.WORKGROUP, change, held.waves, text)
    return None
