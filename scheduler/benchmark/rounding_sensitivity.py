"""How far drawn roundings move results, as a bound on what the real ones may."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.rounding_noise import overflow_threshold
from scheduler.ir.storage import Array

# So many draws that an element which roundings move much is hardly ever moved little by all of
# them, and how many times the farthest of these a kernel's own may move it.
_DRAWS = 8
_FACTOR = 16.0


def rounding_bounds(
    run: Callable[[], Mapping[str, Array]],
    expected: Mapping[str, Array],
    dtypes: Mapping[str, DType],
) -> dict[str, Array]:
    """For each float result of ``expected`` how far each element may be off (float32, the same
    shape), from runs with drawn roundings. Where one of them leaves the type's range on the way,
    or comes back into it, it is infinite: the result may be special there. What is moved over the
    end of the range of its own type, from near to it, is moved as far as the end."""
    moved = {
        name: np.zeros(np.shape(value))
        for name, value in expected.items()
        if np.issubdtype(np.asarray(value).dtype, np.floating)
    }
    for _ in range(_DRAWS):
        made = run()
        for name, most in moved.items():
            if name not in made or np.shape(made[name]) != most.shape:
                continue  # a size that depends on data may be another
            one, exact = np.asarray(made[name]), np.asarray(expected[name])
            end = overflow_threshold(dtypes.get(name))
            with np.errstate(invalid="ignore"):
                near = np.isinf(one) & (np.abs(exact) >= end / 2) & (np.sign(one) == np.sign(exact))
                one = np.where(near & np.isfinite(exact), np.copysign(end, exact), one)
                off = np.where(np.isfinite(one) == np.isfinite(exact), np.abs(one - exact), np.inf)
            np.maximum(most, np.nan_to_num(off, nan=0.0, posinf=np.inf), out=most)
    with np.errstate(over="ignore"):
        return {name: (_FACTOR * most).astype(np.float32) for name, most in moved.items()}
