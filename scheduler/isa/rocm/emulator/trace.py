"""What waves did: which instructions, with how many lanes, and which memory they touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Access:
    """One instruction's access to memory by one wave.

    ``addresses`` are bytes: [lanes] of those that are switched on, in the order of the lanes with
    ``lanes`` [lanes] their numbers; ``bytes`` a lane. Of LDS, addresses count from the block's
    own; of scalar loads there is one. An instruction with two addresses a lane (``ds_read2``,
    ``ds_write2``) has ``second`` besides.
    """

    addresses: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]
    bytes: int
    second: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class WaveTrace:
    """One wave from its begin to its end.

    ``block`` is the block's number in the grid (x fastest), ``wave`` the wave's in the block.
    ``executed`` [n] int32 are indices into the function's instructions, in the order of their
    execution; ``active`` [n] uint8 how many lanes were switched on. ``accesses`` maps a position in
    ``executed`` to the memory touched there. ``cut`` says that the wave was not run to its end.
    """

    block: int
    wave: int
    executed: npt.NDArray[np.int32]
    active: npt.NDArray[np.uint8]
    accesses: Mapping[int, Access]
    cut: bool = False
