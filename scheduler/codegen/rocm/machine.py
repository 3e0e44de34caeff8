"""A board as estimates see it: the figures of a target's first board that a time hangs on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from scheduler.ir.dtypes import DType
from scheduler.targets import Board, Target, boards, names
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import hip_hardware

_REGISTERS = 65536  # of NVIDIA's SMs
_FMA_RATE = 128  # operations a cycle and unit, where no rate is published
_PARTIAL_LINES = 0.45  # of RDNA: a line that steps take in parts comes again, that much of it

T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """A board as a product of one element type sees it: ``rate`` is operations a cycle and compute
    unit (SM), ``registers`` those of a lane that a SIMD has for all its waves."""

    processor: str
    units: int
    cycles_per_us: float
    bytes_per_us: float
    rate: float
    wavefront: int
    simds: int
    registers: int
    lds_bytes: int
    spreads: bool = False
    """Whether a wave reads ahead in an order that is said (kiln/mma.h)."""
    partial_lines: float = 0.0
    """Of a line that a step takes a part of, what the next step has to fetch again."""
    cus_per_wgp: int = 1
    """Units that share each other's blocks: two of RDNA are a work-group processor."""

    def as_wgp(self) -> Machine:
        """Of units that are ``joined`` as if they were one."""
        n = self.cus_per_wgp
        return replace(
            self,
            units=self.units // n,
            rate=self.rate * n,
            simds=self.simds * n,
            lds_bytes=self.lds_bytes * n,
        )


@lru_cache(maxsize=256)
def machine_of(target: Target, element: DType, *, allow_tf32: bool = False) -> Machine:
    """The target's first board; of a target without one, that of the nearest of its generation."""
    gpu, board = hip_hardware(target), _board(target)
    rate = board.matrix.get(element.label) or board.vector.get(element.label) or _FMA_RATE
    rate = board.matrix.get("tf32", rate) if allow_tf32 else rate
    amd = gpu if isinstance(gpu, AmdHardware) else None
    rdna = amd is not None and amd.architecture == "rdna"
    return Machine(
        gpu.processor,
        board.compute_units,
        float(board.clock_mhz),
        board.memory_bytes_per_s / 1e6,
        float(rate),
        gpu.wavefront,
        amd.simds_per_cu if amd else 4,
        amd.vgprs_per_simd if amd else _REGISTERS // 128,
        amd.lds_bytes if amd else gpu.max_lds_per_block_bytes,
        amd is not None and amd.architecture == "cdna",
        _PARTIAL_LINES if rdna else 0.0,
        2 if rdna else 1,
    )


def _board(target: Target) -> Board:
    """Of what the target is or emulates."""
    name = target.emulates or target.name
    if found := boards(name):
        return found[0]
    near = sorted(names(), key=lambda other: -_common_prefix_length(other, name))
    return next(board for other in near for board in boards(other))


def _common_prefix_length(one: str, other: str) -> int:
    """How many letters they begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def worst_ratios(
    candidates: Iterable[T], times: Sequence[Callable[[T], float]]
) -> Mapping[T, float]:
    """Each candidate's time over that of the best, by the one of ``times`` (a target's each) where
    that is most."""
    given = list(candidates)
    worst = dict.fromkeys(given, 0.0)
    for time in times:
        found = {one: time(one) for one in given}
        least = min(found.values(), default=0.0) or 1.0  # of nothing
        worst = {one: max(worst[one], found[one] / least) for one in given}
    return worst


def minimax_candidate(candidates: Iterable[T], times: Sequence[Callable[[T], float]]) -> T:
    """The candidate that fares best where it fares worst; the first of equals."""
    ratios = worst_ratios(candidates, times)
    return min(ratios, key=lambda one: ratios[one])
