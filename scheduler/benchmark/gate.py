"""The correctness gate: a kernel is timed only after it gave correct results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.dtypes import DType
from scheduler.ir.rounding_noise import overflow_threshold
from scheduler.ir.storage import Array, from_storage_native

_CHUNK_ELEMENTS = (
    2**22
)  # elements compared at a time: outputs are large, and their float64 copies larger


def check_outputs(case: Case, storages: Mapping[str, Array], damaged: tuple[str, ...]) -> Check:
    """Compare the outputs' storages with the reference; the check is that of the worst element."""
    worst = Check(True, 0.0, 0.0, 0.0, not damaged)
    for name, expected in case.expected.items():
        got = from_storage_native(storages[name], case.buffers[name])
        if name in case.keys and is_sorted_order(
            np.moveaxis(got, case.along[name], -1),
            np.moveaxis(expected, case.along[name], -1),
            case.keys[name],
            case.tolerances[name],
        ):
            continue
        check = compare_output(
            *(got, expected, case.tolerances[name], name, case.carried.get(name)),
            dtype=case.buffers[name].dtype,
        )
        if check.ratio > worst.ratio or not check.passed:
            worst = check
            if not check.passed:
                break
    if damaged:
        detail = f"wrote outside its outputs: {', '.join(damaged)}"
        return Check(False, worst.max_error, worst.bound, worst.ratio, False, detail)
    return worst


def is_sorted_order(got: Array, expected: Array, keys: Array, tolerance: Tolerance) -> bool:
    """Whether indices sort the keys; keys within the tolerance may be swapped.

    All three arrays have the sorted dimension last. Indices in a row must be distinct; ``expected``
    is the exact order.
    """
    length = keys.shape[-1]
    if got.shape != expected.shape or ((got < 0) | (got >= length)).any():
        return False
    if (np.diff(np.sort(got, axis=-1), axis=-1) == 0).any():
        return False
    reference_keys = np.take_along_axis(keys, expected, -1)
    sorted_keys = np.take_along_axis(keys, got, -1)
    if _Comparison(sorted_keys, reference_keys, tolerance, None, np.inf).describe_misplaced():
        return False
    bound = 2 * tolerance.bound(reference_keys, tolerance.scale(keys))
    with np.errstate(invalid="ignore"):
        deviation = np.where(np.isfinite(reference_keys), np.abs(sorted_keys - reference_keys), 0.0)
    return bool((deviation <= bound).all())


def compare_output(
    got: Array,
    expected: Array,
    tolerance: Tolerance,
    name: str,
    carried: Array | None = None,
    *,
    dtype: DType | None = None,
) -> Check:
    """Check one output. NaN must be where the reference has NaN, infinities likewise.

    ``carried`` is the error that each element may have beyond the tolerance, in the output's shape;
    if it is infinite, the element may be NaN or infinite. ``dtype`` is the output's type: a
    reference value beyond its range must be infinite, and one within the bound of the end of the
    range may be.
    """
    if got.shape != expected.shape:
        return _failed_check(name, f"shape {got.shape}, expected {expected.shape}")
    if not np.issubdtype(expected.dtype, np.inexact):
        different = got != expected
        if carried is not None and different.any():
            different &= np.abs(got.astype(np.float64) - expected) > carried
        wrong = np.count_nonzero(different)
        if wrong:
            return _failed_check(name, f"{wrong} of {expected.size} elements differ")
        return Check(True, 0.0, 0.0, 0.0, True)
    comparison = _Comparison(got, expected, tolerance, carried, overflow_threshold(dtype))
    misplaced = comparison.describe_misplaced()
    if misplaced:
        return _failed_check(name, misplaced)
    return comparison.worst_check(name)


class _Comparison:
    """One output and its reference."""

    def __init__(
        self,
        got: Array,
        expected: Array,
        tolerance: Tolerance,
        carried: Array | None,
        overflow_end: float,
    ) -> None:
        self._got, self._expected, self._tolerance = got, expected, tolerance
        self._carried, self._end = carried, overflow_end
        self._scale = max(
            (tolerance.scale(self._clamp(part)) for _, _, part in _chunks(got, expected)),
            default=0.0,
        )

    def _clamp(self, expected: Array) -> Array:
        """Return the reference with values beyond the type's range replaced by infinities."""
        if self._end == np.inf:
            return expected
        with np.errstate(invalid="ignore"):
            beyond = np.abs(expected) >= self._end
        return np.where(beyond, np.copysign(np.inf, expected), expected)

    def _bound(self, expected: Array, start: int) -> tuple[Array, Array]:
        """Return the bound of each element, and whether it may be NaN or infinite."""
        bound = self._tolerance.bound(expected, self._scale)
        if self._carried is None:
            return bound, np.zeros(bound.shape, dtype=bool)
        extra_error = self._carried.reshape(-1)[start : start + bound.size]
        return bound + np.where(np.isfinite(extra_error), extra_error, 0.0), np.isinf(extra_error)

    def describe_misplaced(self) -> str:
        """Return the error for misplaced NaNs and infinities, or an empty string."""
        wrong = 0
        for start, got, expected in _chunks(self._got, self._expected):
            clamped = self._clamp(expected)
            special, expected_special = ~np.isfinite(got), ~np.isfinite(clamped)
            if np.iscomplexobj(expected):
                # Which parts are not finite depends on the order of a product's terms, as in torch.
                wrong += int(np.count_nonzero(special != expected_special))
                continue
            differs = (special | expected_special) & ~(
                (got == clamped) | (np.isnan(got) & np.isnan(clamped))
            )
            if not differs.any():
                continue
            bound, may_be_special = self._bound(expected, start)
            with np.errstate(invalid="ignore"):
                # Near the end of the range both are correct.
                is_near_end = np.isinf(got) & (np.sign(got) == np.sign(expected))
                is_near_end &= np.isfinite(expected) & (np.abs(expected) + bound >= self._end)
                is_near_end |= (
                    np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= bound)
                )
            differs &= ~is_near_end & ~(may_be_special & special)
            wrong += int(np.count_nonzero(differs))
        return f"{wrong} elements differ from the reference in NaN or infinity" if wrong else ""

    def worst_check(self, name: str) -> Check:
        """Return the check of the worst element that is finite in both."""
        worst, detail = Check(True, 0.0, 0.0, 0.0, True), ""
        for start, got, expected in _chunks(self._got, self._expected):
            bound, _ = self._bound(self._clamp(expected), start)
            finite = np.isfinite(self._clamp(expected)) & np.isfinite(got)
            with np.errstate(invalid="ignore"):
                error = np.abs(np.where(finite, got - expected, 0.0))
            ratio = error / np.maximum(bound, np.finfo(np.float64).tiny)
            worst_index = int(ratio.argmax())
            if ratio[worst_index] <= worst.ratio and start:
                continue
            worst = Check(
                True,
                float(error[worst_index]),
                float(bound[worst_index]),
                float(ratio[worst_index]),
                True,
            )
            position = ", ".join(
                str(int(i)) for i in np.unravel_index(start + worst_index, self._got.shape)
            )
            value, reference = got[worst_index], expected[worst_index]
            detail = f"{name}[{position}] is {value:.6g}, the reference {reference:.6g}"
        return worst if worst.ratio <= 1 else replace(worst, passed=False, detail=detail)


def _chunks(got: Array, expected: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield chunks of both tensors in row-major order: the position of the first element, then the
    elements of each in the reference's type (float64 or complex128)."""
    flat, reference = got.reshape(-1), expected.reshape(-1)
    for start in range(0, flat.size, _CHUNK_ELEMENTS):
        part = slice(start, start + _CHUNK_ELEMENTS)
        yield start, flat[part].astype(reference.dtype), reference[part]


def _failed_check(name: str, why: str) -> Check:
    return Check(False, float("inf"), 0.0, float("inf"), True, f"{name}: {why}")
