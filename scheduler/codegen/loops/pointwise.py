"""Pointwise kernels in any language: each thread computes one pack of neighbouring points of the
merged axes, with several stores over one set of axes."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.alignment import VECTORS, Pack, reject_wide
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.template import LoopTemplate
from scheduler.codegen.single_launch import Kernel
from scheduler.codegen.template import Config
from scheduler.errors import Rejected
from scheduler.ir.operations import Axis

_THREADS = (256, 128, 512)
# Fewer blocks than this leave compute units of the larger GPUs idle (MI300X has 304).
MIN_DEVICE_BLOCKS = 304


class PointwiseTemplate(LoopTemplate[Kernel]):
    """Vectorised along the innermost axis where legal."""

    name = "pointwise"

    @property
    def default_threads(self) -> int:
        """Return the threads per block if nothing was measured."""
        return _THREADS[0]

    @property
    def innermost(self) -> Axis | None:
        """Return the axis along which a thread's points are neighbours."""
        return self.nest.outer[-1] if self.nest.outer else None

    def movable(self, vector: int) -> Sequence[Access]:
        """Return the accesses that a thread makes ``vector`` elements at a time."""
        axis, nest = self.innermost, self.nest
        return [a for a in nest.accesses if axis and nest.is_vectorizable(a, axis, vector)]

    def configs(self) -> Sequence[Config]:
        return [
            {"threads": threads, "vector": vector} for vector in VECTORS for threads in _THREADS
        ]

    def reject(self, config: Config) -> Rejected | None:
        vector = int(config["vector"])
        if vector == 1:
            return None
        if self.innermost is None:
            return illegal("a single point cannot be vectorized")
        movable = self.movable(vector)
        if not movable:
            return illegal(
                f"no access has {vector} aligned, consecutive elements along the innermost axis",
                f"innermost extent {self.innermost.size}",
            )
        return reject_wide(self.nest, movable, vector, self.targets[0].words.lane)

    def default_config(self) -> Config:
        points = self.hint(self.nest.outer_numel)
        for vector in reversed(VECTORS):
            config: Config = {"threads": self.default_threads, "vector": vector}
            fills_device = vector == 1 or points >= MIN_DEVICE_BLOCKS * _THREADS[0] * vector
            if fills_device and self.reject(config) is None:
                return config
        raise self.no_config_error()

    def pack(self, vector: int) -> Pack | None:
        """Return the points of a thread; None if it has one."""
        axis = self.innermost
        return Pack(axis, vector) if axis and vector > 1 else None
