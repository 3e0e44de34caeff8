"""The next step to a higher occupancy: what would admit more warps, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.build.cuda.occupancy import Demand, Limiter, Occupancy, occupancy
from scheduler.isa.bisect import greatest_smaller
from scheduler.targets import Target

_MOST_THREADS = 1024  # of a block


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
    if now.limiter is Limiter.REGISTERS:
        return _fewer_registers(demand, target, now)
    if now.limiter is Limiter.SHARED:
        return _less_shared(demand, target, now)
    return _other_block(demand, target, now)


def _fewer_registers(demand: Demand, target: Target, now: Occupancy) -> NextStep | None:
    def warps(registers: int) -> int:
        return occupancy(replace(demand, registers=registers), target).warps

    have = greatest_smaller(demand.registers, 1, now.warps, warps)
    if have is None:
        return None
    change, more = demand.registers - have, warps(have)
    plural = "" if change == 1 else "s"
    text = f"{change} fewer register{plural}: {now.warps} → {more} warps"
    return NextStep(Limiter.REGISTERS, have, more, text)


def _less_shared(demand: Demand, target: Target, now: Occupancy) -> NextStep | None:
    def warps(shared_bytes: int) -> int:
        return occupancy(replace(demand, shared_bytes=shared_bytes), target).warps

    have = greatest_smaller(demand.shared_bytes, 0, now.warps, warps)
    if have is None:
        return None
    change, more = demand.shared_bytes - have, warps(have)
    plural = "" if change == 1 else "s"
    text = f"{change} fewer byte{plural} of shared memory: {now.warps} → {more} warps"
    return NextStep(Limiter.SHARED, have, more, text)


def _other_block(demand: Demand, target: Target, now: Occupancy) -> NextStep | None:
    """Return the nearest block size in whole warps with which more warps fit: a smaller one if one
    more block does not fit, a larger one if an SM takes no more blocks."""
    wavefront = target.wavefront
    if now.limiter is Limiter.BLOCKS:
        first = (demand.threads // wavefront + 1) * wavefront
        sizes = range(first, _MOST_THREADS + 1, wavefront)
    else:
        sizes = range((demand.threads - 1) // wavefront * wavefront, 0, -wavefront)
    for threads in sizes:
        held = occupancy(replace(demand, threads=threads), target)
        if held.warps > now.warps:
            text = f"blocks of {threads} threads: {now.warps} → {held.warps} warps"
            return NextStep(now.limiter, threads, held.warps, text)
    return None
