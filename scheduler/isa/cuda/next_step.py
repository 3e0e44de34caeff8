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
    now = occupancy(demand, target)
    if now.limiter in _AMOUNTS:
        name, least, one, many = _AMOUNTS[now.limiter]
        amount: int = getattr(demand, name)

        def warps(count: int) -> int:
            changed: dict[str, Any] = {name: count}
            return occupancy(replace(demand, **changed), target).warps

        have = greatest_amount_with_more_waves(amount, least, now.warps, warps)
        if have is None:
            return None
        change, more = amount - have, warps(have)
        text = f"{change} fewer {one if change == 1 else many}: {now.warps} → {more} warps"
        return NextStep(now.limiter, have, more, text)
    # The nearest block size in whole warps: a smaller one if one more block does not fit, a larger
    # one if an SM takes no more blocks.
    wavefront = target.wavefront
    if now.limiter is Limiter.BLOCKS:
        first = (demand.threads // wavefront + 1) * wavefront
        sizes = range(first, _MOST_THREADS + 1, wavefront)
    else:
        sizes = range((demand.threads - 1) // wavefront * wavefront, 0, -wavefront)
    for threads in sizes:
        more = occupancy(replace(demand, threads=threads), target).warps
        if more > now.warps:
            text = f"blocks of {threads} threads: {now.warps} → {more} warps"
            return NextStep(now.limiter, threads, more, text)
    return None
