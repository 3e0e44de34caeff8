"""The next step to a higher occupancy: what would admit more warps, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from scheduler.build.cuda.occupancy import Demand, Limiter, occupancy
from scheduler.isa.bisect import greatest_amount_with_more_waves
from scheduler.targets import Target

_MOST_THREADS = 1024  # of a block
# The field of ``Demand``, its least value, and its unit in the singular and in the plural.
_AMOUNTS = {
    Limiter.REGISTERS: ("registers", 1, "register", "registers"),
    Limiter.SHARED: ("shared_bytes", 0, "byte of shared memory", "bytes of shared memory"),
}


@dataclass(frozen=True)
class NextStep:
    """A change that gives more warps per SM: ``text`` reads ``2 fewer registers: 12 → 16 warps``.
    ``have`` is the amount of the limiting resource after the change."""

    limiter: Limiter
    have: int
    warps: int
    text: str


def next_step(demand: Demand, target: Target) -> NextStep | None:
    """Return the smallest change of the limiting resource alone that admits more warps.

    None when the hardware's maximum is reached, or when no change of one resource helps.
    """
    current = occupancy(demand, target)
    if current.limiter in _AMOUNTS:
        field, least, singular, plural = _AMOUNTS[current.limiter]
        amount: int = getattr(demand, field)

        def warps(count: int) -> int:
            changed: dict[str, Any] = {field: count}
            return occupancy(replace(demand, **changed), target).warps

        reduced_amount = greatest_amount_with_more_waves(amount, least, current.warps, warps)
        if reduced_amount is None:
            return None
        change, new_warps = amount - reduced_amount, warps(reduced_amount)
        unit = singular if change == 1 else plural
        text = f"{change} fewer {unit}: {current.warps} → {new_warps} warps"
        return NextStep(current.limiter, reduced_amount, new_warps, text)
    # The nearest block size in whole warps: a smaller one if one more block does not fit, a larger
    # one if an SM takes no more blocks.
    wavefront = target.wavefront
    if current.limiter is Limiter.BLOCKS:
        first = (demand.threads // wavefront + 1) * wavefront
        sizes = range(first, _MOST_THREADS + 1, wavefront)
    else:
        sizes = range((demand.threads - 1) // wavefront * wavefront, 0, -wavefront)
    for threads in sizes:
        new_warps = occupancy(replace(demand, threads=threads), target).warps
        if new_warps > current.warps:
            text = f"blocks of {threads} threads: {current.warps} → {new_warps} warps"
            return NextStep(current.limiter, threads, new_warps, text)
    return None
