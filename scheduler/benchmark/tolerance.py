"""Error bounds relative to the float64 reference, from dtypes and reduction lengths alone.

Used for whole graphs and for kernels of complex numbers. For other kernels the error of each
element is computed (``scheduler/lowering/running_error.py``).

A sum of K products in a precision with unit roundoff u has an error of at most K*u times the sum of
the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); the result is
then rounded once to the output's type. The sum of magnitudes is unknown for a fused kernel, so the
largest reference value of the tensor is used, with a factor for the cancellation due to random
signs (about sqrt(K) between the two) and for the functions of an epilogue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.ir.dtypes import DType

# Roundings of one value outside the sum: loads' conversions, an epilogue's functions (a few ulp
# each, kiln/math.h states them), the store.
_POINTWISE_ROUNDINGS = 16.0


@dataclass(frozen=True)
class Tolerance:
    """``bound_i = relative * |ref_i| + absolute * max|ref|``; 0 for exact types."""

    relative: float
    absolute: float

    def scale(self, reference: npt.NDArray[np.float64]) -> float:
        """Return the base of ``absolute``: the largest finite magnitude of the whole tensor."""
        finite = np.abs(reference[np.isfinite(reference)])
        return max(float(finite.max(initial=0.0)), _MIN_SCALE)

    def bound(
        self, reference: npt.NDArray[np.float64], scale: float | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the bound of each element, in the tensor's unit; same shape as ``reference``.

        For a part of a tensor, ``scale`` is that of the whole tensor.
        """
        with np.errstate(invalid="ignore"):
            magnitudes = np.where(np.isfinite(reference), np.abs(reference), 0.0)
        tensor_scale = self.scale(reference) if scale is None else scale
        return self.relative * magnitudes + self.absolute * tensor_scale


_MIN_SCALE = 1e-30  # an all-zero reference still admits a denormal's worth of noise


def kernel_tolerance(output: DType, accumulate: DType, reduction_length: int) -> Tolerance:
    """The bound of one kernel's output.

    ``accumulate`` is the type of the sum; ``reduction_length`` the number of summands (1 for a
    pointwise kernel).
    """
    if not output.is_inexact:
        return Tolerance(0.0, 0.0)
    length = max(reduction_length, 1)
    sum_error = accumulate.eps * length * max(1.0, math.log2(length + 1) / 4)
    return Tolerance(
        relative=2 * output.eps + _POINTWISE_ROUNDINGS * accumulate.eps,
        absolute=sum_error + _POINTWISE_ROUNDINGS * accumulate.eps,
    )


def rounding_tolerance(output: DType) -> Tolerance:
    """The bound of a value that is rounded once, to its type. References store 8-bit floats already
    rounded."""
    return Tolerance(0.0 if output.is_float8 else output.eps, 0.0)


def stored_tolerance(output: DType) -> Tolerance:
    """The bound of an op without a kernel, which is computed in float64: its result and its inputs
    are rounded to their buffers' types."""
    return Tolerance(relative=2 * output.eps, absolute=2 * output.eps)


def chain_tolerance(steps: list[Tolerance]) -> Tolerance:
    """The bound after a chain of kernels: the sum of all errors.

    A well-conditioned layer propagates a relative error almost unchanged; normalisations and
    residual sums mix rows, so each step's relative error is absolute for later steps.
    """
    total = sum(step.relative + step.absolute for step in steps)
    return Tolerance(relative=total, absolute=total)
