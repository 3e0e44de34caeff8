"""Traces of waves: the executed instructions, their active lanes, and the accessed memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Access:
    """One instruction's access to memory by one wave.

    ``addresses`` are bytes: [lanes] of the active ones, in lane order, with their numbers in
    ``lanes`` [lanes]; ``bytes`` is per lane. For LDS, addresses are relative to the block's; scalar
    loads have one. An instruction with two addresses per lane (``ds_read2``, ``ds_write2``) also
    has ``second``.
    """

    addresses: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]
    bytes: int
    second: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class WaveTrace:
    """One wave from beginning to end.

    ``block`` is the block's number in the grid (x fastest), ``wave`` the wave's in the block.
    ``executed`` [n] int32 are indices into the function's instructions, in execution order;
    ``active`` [n] uint8 how many lanes were active. ``accesses`` maps a position in ``executed`` to
    the memory accessed there. ``cut``: the wave was not run to its end.
    """

    block: int
    wave: int
    executed: npt.NDArray[np.int32]
    active: npt.NDArray[np.uint8]
    accesses: Mapping[int, Access]
    cut: bool = False
