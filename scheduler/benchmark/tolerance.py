"""How far a result may lie from the float64 reference, by dtypes and reduction lengths alone: that
of a whole graph, and of kernels of complex numbers. Of others each element's error is known
(``scheduler/lowering/running_error.py``).

A sum of K products in a precision with unit roundoff u is off by at most K*u times the sum of the
magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); the result is
then rounded once to the output's type. The sum of magnitudes is not at hand for a fused kernel, so
the largest reference value of the tensor stands for it, with a factor for the cancellation that
random signs bring (about sqrt(K) between the two) and for the functions of an epilogue.
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
        """What ``absolute`` is relative to: the largest finite value of a whole tensor."""
        finite = np.abs(reference[np.isfinite(reference)])
        return max(float(finite.max(initial=0.0)), _SMALLEST)

    def bound(
        self, reference: npt.NDArray[np.float64], scale: float | None = None
    ) -> npt.NDArray[np.float64]:
        """The bound of each element, in the tensor's own unit; same shape as ``reference``.

        ``scale`` is given for a part of a tensor: that of the whole.
        """
        with np.errstate(invalid="ignore"):
            near = np.where(np.isfinite(reference), np.abs(reference), 0.0)
        whole = self.scale(reference) if scale is None else scale
        return self.relative * near + self.absolute * whole


_SMALLEST = 1e-30  # an all-zero reference still admits a denormal's worth of noise


def kernel_tolerance(output: DType, accumulate: DType, reduction_length: int) -> Tolerance:
    """The bound of one kernel's output.

    ``accumulate`` is the type of the sum; ``reduction_length`` the number of summands (1 for a
    pointwise kernel).
    """
    if not output.is_inexact:
        return Tolerance(0.0, 0.0)
    length = max(reduction_length, 1)
    summed = accumulate.eps * length * max(1.0, math.log2(length + 1) / 4)
    return Tolerance(
        relative=2 * output.eps + _POINTWISE_ROUNDINGS * accumulate.eps,
        absolute=summed + _POINTWISE_ROUNDINGS * accumulate.eps,
    )


def rounding_tolerance(output: DType) -> Tolerance:
    """The bound of what is rounded once, to its type. References hold floats of 8 bits as they are
    rounded."""
    return Tolerance(0.0 if output.is_float8 else output.eps, 0.0)


def stored_tolerance(output: DType) -> Tolerance:
    """The bound of what is computed in float64, as ops without a kernel are: it is rounded to its
    buffer's type, and so was what it read."""
    return Tolerance(relative=2 * output.eps, absolute=2 * output.eps)


def chain_tolerance(steps: list[Tolerance]) -> Tolerance:
    """The bound after a chain of kernels: errors of all of them, each carried on.

    A well-conditioned layer carries a relative error on about unchanged; normalisations and
    residual sums mix rows, so each step's relative part becomes absolute for those after it.
    """
    total = sum(step.relative + step.absolute for step in steps)
    return Tolerance(relative=total, absolute=total)
