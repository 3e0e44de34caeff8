"""bfloat16 on the host, which NumPy lacks: the upper half of a float32's bits.

8 bits of exponent, as in float32, and 7 of fraction; arrays are ``uint16``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_QUIET_NAN = 0x7FC0


def float32_to_bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Return the bits of the nearest bfloat16 of each value, ties to even, any shape.

    Values beyond the largest finite one become infinite; every NaN becomes the quiet NaN. Other
    types are converted to float32 first.
    """
    single = np.ascontiguousarray(values, dtype=np.float32).reshape(np.shape(values))
    bits = single.view(np.uint32)
    # Half of the last place that stays, less one unless that place is odd: ties go to even.
    rounding = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    upper = ((bits + rounding) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(_QUIET_NAN), upper)


def bfloat16_to_float32(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the values of bfloat16 bits, exactly."""
    wide = np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).reshape(np.shape(bits))
