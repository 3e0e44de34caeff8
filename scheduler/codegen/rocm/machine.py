"""A board for estimates: the figures of a target's first board that determine its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from scheduler.ir.dtypes import DType
from scheduler.targets import Target, boards, names
from scheduler.targets.amd import AmdHardware
from scheduler.targets.gemm_costs import GemmCosts
from scheduler.targets.model import hip_hardware

_SM_REGISTERS = 65536
_FMA_OPS_PER_CYCLE = 128  # of a unit, if no rate is published

# Compute units of a medium board, for targets without published figures, and for several targets
# that share their source.
_DEFAULT_COMPUTE_UNITS = 128

T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """A board for products of one element type: ``rate`` is operations per cycle and compute unit
    (SM), ``registers`` those of a lane that a SIMD has for all its waves."""

    costs: GemmCosts
    units: int
    cycles_per_us: float
    bytes_per_us: float
    rate: float
    wavefront: int
    simds: int
    registers: int
    lds_bytes: int
    spreads: bool = False
    """Whether a wave reads ahead in a prescribed order (kiln/mma.h)."""
    partial_lines: float = 0.0
    """Share of a partly used line that the next step must fetch again."""
    cus_per_wgp: int = 1
    """Units that share each other's blocks: two RDNA units are a work-group processor."""

    def as_wgp(self) -> Machine:
        """Return the machine with the ``cus_per_wgp`` units of a work-group processor combined into
        one."""
        units = self.cus_per_wgp
        return replace(
            self,
            units=self.units // units,
            rate=self.rate * units,
            simds=self.simds * units,
            lds_bytes=self.lds_bytes * units,
        )


def compute_units(targets: Sequence[Target]) -> int:
    """Return the compute units of the first board, if there is one target."""
    target_boards = boards(targets[0].name) if len(targets) == 1 else ()
    return target_boards[0].compute_units if target_boards else _DEFAULT_COMPUTE_UNITS


@lru_cache(maxsize=256)
def machine_of(target: Target, element: DType, *, allow_tf32: bool = False) -> Machine:
    """Return the first board of the target, or of the target that it emulates; for a target without
    one, that of a similar target."""
    gpu = hip_hardware(target)
    candidate_names = (target.emulates or target.name, gpu.similar, *names())
    board = next(board for name in candidate_names if name for board in boards(name))
    rates = [board.matrix.get("tf32")] if allow_tf32 else []
    rates += [board.matrix.get(element.label), board.vector.get(element.label)]
    amd = gpu if isinstance(gpu, AmdHardware) else None
    return Machine(
        gpu.gemm_costs,
        board.compute_units,
        float(board.clock_mhz),
        board.memory_bytes_per_s / 1e6,
        float(next(filter(None, rates), _FMA_OPS_PER_CYCLE)),
        gpu.wavefront,
        amd.simds_per_cu if amd else 4,
        amd.vgprs_per_simd if amd else _SM_REGISTERS // 128,
        amd.lds_bytes if amd else gpu.max_lds_per_block_bytes,
        gpu.reads_ahead_in_order,
        gpu.partial_lines,
        gpu.units_per_pair,
    )


def worst_ratios(
    candidates: Iterable[T], estimators: Sequence[Callable[[T], float]]
) -> Mapping[T, float]:
    """Return each candidate's time relative to the best, by the one of ``estimators`` (one per
    target) for which it is highest."""
    ratios = dict.fromkeys(candidates, 0.0)
    for estimate in estimators:
        estimates = {candidate: estimate(candidate) for candidate in ratios}
        min_time = min(estimates.values(), default=0.0) or 1.0  # for no candidates
        ratios = {c: max(ratio, estimates[c] / min_time) for c, ratio in ratios.items()}
    return ratios


def minimax_candidate(candidates: Iterable[T], estimators: Sequence[Callable[[T], float]]) -> T:
    """Return the candidate whose worst ratio is lowest; the first of equals."""
    ratios = worst_ratios(candidates, estimators)
    return min(ratios, key=ratios.__getitem__)
