"""Sensitivity of results to random roundings, as a bound for a kernel's own roundings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.rounding_noise import overflow_threshold
from scheduler.ir.storage import Array

# Enough draws that all of them rarely underestimate a sensitive element, and the factor between the
# largest observed deviation and the bound.
_DRAWS = 8
_FACTOR = 16.0


def rounding_bounds(
    run: Callable[[], Mapping[str, Array]],
    expected: Mapping[str, Array],
    dtypes: Mapping[str, DType],
) -> dict[str, Array]:
    """Return a bound for each element of the float results of ``expected`` (float32, same shape).

    The bounds come from runs with random roundings. A bound is infinite if an element leaves the
    finite range in a run, or returns to it: the result may then be NaN or infinite. An element near
    the end of its type's range that overflows is treated as moved to the end.
    """
    deviations = {
        name: np.zeros(np.shape(value))
        for name, value in expected.items()
        if np.issubdtype(np.asarray(value).dtype, np.floating)
    }
    for _ in range(_DRAWS):
        results = run()
        for name, max_deviation in deviations.items():
            if name not in results or np.shape(results[name]) != max_deviation.shape:
                continue  # a data-dependent size may differ
            got, exact = np.asarray(results[name]), np.asarray(expected[name])
            end = overflow_threshold(dtypes.get(name))
            with np.errstate(invalid="ignore"):
                overflows_near_end = (
                    np.isinf(got) & (np.abs(exact) >= end / 2) & (np.sign(got) == np.sign(exact))
                )
                got = np.where(
                    overflows_near_end & np.isfinite(exact), np.copysign(end, exact), got
                )
                deviation = np.where(
                    np.isfinite(got) == np.isfinite(exact), np.abs(got - exact), np.inf
                )
            np.maximum(
                max_deviation, np.nan_to_num(deviation, nan=0.0, posinf=np.inf), out=max_deviation
            )
    with np.errstate(over="ignore"):
        return {
            name: (_FACTOR * max_deviation).astype(np.float32)
            for name, max_deviation in deviations.items()
        }
