"""Random roundings: an estimate of how far a kernel's roundings may move a result.

With cancellation in a sum, division by such a sum, or a row with a variance near 0, the rounding
errors of a correct kernel are large relative to the result, and a bound from the result alone is
too small. Recomputing with each step perturbed by at most its rounding error shows their effect. A
step that leaves its type's range is infinite, as in the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.ir.dtypes import DType
from scheduler.ir.ops import Elements, Op

Array: TypeAlias = npt.NDArray[Any]

# End of a float type's range: magnitudes from here on are rounded to infinity.
# Ops that select or compare their arguments' elements: nothing is rounded.
_SELECTION_OPS = frozenset(
    f"aten.{name}"
    for name in (
        *("relu", "relu6", "clamp", "clamp_min", "clamp_max", "hardtanh", "maximum", "minimum"),
        *("max", "min", "amax", "amin", "aminmax", "fmax", "fmin", "where", "masked_fill"),
        *("abs", "neg", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"),
        *("eq", "ne", "lt", "le", "gt", "ge", "argmax", "argmin", "argsort", "sort", "topk"),
        *("cummax", "cummin", "median", "kthvalue", "mode", "searchsorted", "bucketize", "isin"),
        *("max_pool1d", "max_pool2d", "max_pool3d", "copy", "fill", "embedding", "gather"),
    )
)
#: Ops whose f32 products may be rounded to tf32, if the graph allows it.
MATMUL_OPS = frozenset(
    f"aten.{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "addbmm", "linear", "matmul", "dot", "mv", "addmv"),
        *(
            "outer",
            "addr",
            "einsum",
            "tensordot",
            "inner",
            "chain_matmul",
            "bilinear",
            "_trilinear",
        ),
        *("convolution", "convolution_backward", "conv1d", "conv2d", "conv3d"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution"),
    )
)
SCAN_OPS = ("aten.cumsum", "aten.cumprod", "aten.logcumsumexp")
_OVERFLOW_THRESHOLDS = {
    DType.F16: (2 - 2.0**-11) * 2.0**15,
    DType.BF16: (2 - 2.0**-8) * 2.0**127,
    DType.F32: (2 - 2.0**-24) * 2.0**127,
}


def overflow_threshold(dtype: DType | None) -> float:
    """Return the least magnitude that a float type rounds to infinity; inf if there is none."""
    return _OVERFLOW_THRESHOLDS.get(dtype, np.inf) if dtype is not None else np.inf


def is_arithmetic(op: Op) -> bool:
    """Whether an op does arithmetic, so that its kernel rounds."""
    return op.elements is Elements.COMPUTED and op.name not in _SELECTION_OPS


@dataclass(frozen=True)
class RoundingNoise:
    """One draw of roundings. Values that are not floats are unchanged."""

    rng: np.random.Generator

    def perturb(self, value: Array, dtype: DType, eps: float = 0.0) -> Array:
        """Perturb a value as if rounded to a type, by up to ``eps`` (default: that of the type's
        compute dtype)."""
        if not _is_float(value):
            return value
        size = eps or dtype.compute_dtype.eps
        with np.errstate(all="ignore"):
            off = value * (1 + size * self.rng.uniform(-1, 1, value.shape))
        return overflow_to_inf(off, dtype)

    def perturb_sum(self, value: Array, spread: Any) -> Array:
        """Perturb a sum by up to ``spread``."""
        if not _is_float(value):
            return value
        with np.errstate(all="ignore"):
            off = value + spread * self.rng.uniform(-1, 1, value.shape)
        return np.where(np.isfinite(value), off, value)


def overflow_to_inf(value: Array, dtype: DType) -> Array:
    """Replace values beyond the type's range by infinities."""
    end = overflow_threshold(dtype)
    if not _is_float(value) or end == np.inf:
        return value
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(value) >= end, np.copysign(np.inf, value), value)


def sum_spread(terms: Array, axis: int) -> Array:
    """Return the error of summing many terms sequentially in float32."""
    count = terms.shape[axis]
    with np.errstate(all="ignore"):
        squares = np.square(np.asarray(terms, np.float64)).sum(axis=axis)
        return np.asarray(DType.F32.eps * np.sqrt(count * squares))


def scan_spread(sums: Array, axis: int) -> Array:
    """Return the error of each running sum along an axis in float32, from the rounding of the
    largest sum before it."""
    steps = 1 + max(sums.shape[axis], 1).bit_length()
    with np.errstate(all="ignore"):
        most = np.maximum.accumulate(np.nan_to_num(np.abs(sums), posinf=0.0), axis=axis)
        return np.asarray(steps * DType.F32.eps * most)


def _is_float(value: Array) -> bool:
    return np.issubdtype(np.asarray(value).dtype, np.floating)
