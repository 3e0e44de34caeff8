"""Pointwise kernels in any language: each thread computes one pack of neighbouring points of the
merged axes, with several stores over one set of axes."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.template import LoopTemplate
from scheduler.codegen.single_launch import Kernel
from scheduler.codegen.template import Config
from scheduler.errors import Rejected
from scheduler.ir.operations import Axis

_THREADS = (256, 128, 512)
_VECTORS = (1, 2, 4, 8)
MAX_LOAD_BYTES = 16  # one lane's load or store: global_load_dwordx4
# Fewer blocks than this leave compute units of the larger GPUs idle (MI300X has 304).
MIN_DEVICE_BLOCKS = 304


class PointwiseTemplate(LoopTemplate[Kernel]):
    """Vectorised along the innermost axis where legal."""

    name = "pointwise"

    @property
    def default_threads(self) -> int:
        """Return the threads per block if nothing was measured."""
        return _THREADS[0]

    def configs(self) -> Sequence[Config]:
        return [
            {"threads": threads, "vector": vector} for vector in _VECTORS for threads in _THREADS
        ]

    def reject(self, config: Config) -> Rejected | None:
        vector = int(config["vector"])
        if vector == 1:
            return None
        axis = self._innermost
        if axis is None:
            return illegal("a single point cannot be vectorized")
        if not self._vector_accesses(axis, vector):
            return illegal(
                f"no access has {vector} aligned, consecutive elements along the innermost axis",
                f"innermost extent {axis.size}",
            )
        widest = max(self._itemsize(access) for access in self._vector_accesses(axis, vector))
        if vector * widest > MAX_LOAD_BYTES:
            lane = self.targets[0].words.lane
            return illegal(
                f"{vector} elements of {widest} bytes exceed the limit of 16 bytes per {lane}"
            )
        return None

    def default_config(self) -> Config:
        points = self.hint(self.nest.outer_numel)
        for vector in reversed(_VECTORS):
            config: Config = {"threads": self.default_threads, "vector": vector}
            enough = vector == 1 or points >= MIN_DEVICE_BLOCKS * _THREADS[0] * vector
            if enough and self.reject(config) is None:
                return config
        raise self.no_config_error()

    def pack(self, vector: int) -> Pack | None:
        """Return the points of a thread; None if it has one."""
        axis = self._innermost
        return Pack(axis, vector) if axis and vector > 1 else None

    @property
    def _innermost(self) -> Axis | None:
        return self.nest.outer[-1] if self.nest.outer else None

    def _vector_accesses(self, axis: Axis, vector: int) -> list[Access]:
        return [a for a in self.nest.accesses if self.nest.is_vectorizable(a, axis, vector)]

    def _itemsize(self, access: Access) -> int:
        return self.lowered.buffers[access.buffer].dtype.itemsize
