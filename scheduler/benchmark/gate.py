"""The correctness gate: nothing is timed before it gave the right answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.storage import Array, held_storage

_PIECE = 2**22  # elements compared at a time: an output may be large, its float64 copies larger


def check_outputs(case: Case, storages: Mapping[str, Array], damaged: tuple[str, ...]) -> Check:
    """Compare the outputs' storages with the reference; the worst element decides."""
    worst = Check(True, 0.0, 0.0, 0.0, not damaged)
    for name, expected in case.expected.items():
        got = held_storage(storages[name], case.buffers[name])
        if name in case.keys and in_order(
            np.moveaxis(got, case.along[name], -1),
            np.moveaxis(expected, case.along[name], -1),
            case.keys[name],
            case.tolerances[name],
        ):
            continue
        found = compare(got, expected, case.tolerances[name], name, case.carried.get(name))
        if found.ratio > worst.ratio or not found.passed:
            worst = found
            if not found.passed:
                break
    if damaged:
        detail = f"wrote outside its outputs: {', '.join(damaged)}"
        return Check(False, worst.max_error, worst.bound, worst.ratio, False, detail)
    return worst


def in_order(got: Array, expected: Array, keys: Array, tolerance: Tolerance) -> bool:
    """Whether indices put keys in order, where keys within the tolerance may change places. All
    three have the rows last; indices are of different elements, ``expected`` the exact order."""
    length = keys.shape[-1]
    if got.shape != expected.shape or ((got < 0) | (got >= length)).any():
        return False
    if (np.diff(np.sort(got, axis=-1), axis=-1) == 0).any():
        return False
    reference = np.take_along_axis(keys, expected, -1)
    found = np.take_along_axis(keys, got, -1)
    if _misplaced(found, reference):
        return False
    bound = 2 * tolerance.bound(reference, tolerance.scale(keys))
    with np.errstate(invalid="ignore"):
        off = np.where(np.isfinite(reference), np.abs(found - reference), 0.0)
    return bool((off <= bound).all())


def compare(
    got: Array, expected: Array, tolerance: Tolerance, name: str, carried: Array | None = None
) -> Check:
    """Check one output. NaN must be where the reference has NaN, infinities likewise.

    ``carried`` is what each element may be off by beyond the tolerance, in the output's shape.
    """
    if got.shape != expected.shape:
        return _failed(name, f"shape {got.shape} where {expected.shape} was due")
    if not np.issubdtype(expected.dtype, np.inexact):
        different = got != expected
        if carried is not None and different.any():
            different &= np.abs(got.astype(np.float64) - expected) > carried
        wrong = np.count_nonzero(different)
        if wrong:
            return _failed(name, f"{wrong} of {expected.size} elements differ")
        return Check(True, 0.0, 0.0, 0.0, True)
    special = _misplaced(got, expected)
    if special:
        return _failed(name, special)
    return _within(got, expected, tolerance, name, carried)


def _pieces(got: Array, expected: Array) -> Iterator[tuple[int, Array, Array]]:
    """Both tensors in row-major order, some of their elements at a time in float64 or
    complex128: first place, elements of each."""
    flat, reference = got.reshape(-1), expected.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        part = slice(start, start + _PIECE)
        yield start, flat[part].astype(reference.dtype), reference[part]


def _misplaced(got: Array, expected: Array) -> str:
    """What is wrong with NaNs and infinities; empty when they are where they are due."""
    unexpected, same_special = 0, True
    for _, got_part, expected_part in _pieces(got, expected):
        special = ~np.isfinite(expected_part)
        same_special = same_special and _same(got_part[special], expected_part[special])
        unexpected += int(np.count_nonzero(~np.isfinite(got_part[~special])))
    if same_special and not unexpected:
        return ""
    return f"{unexpected} elements are NaN or infinite, or NaNs lie elsewhere"


def _same(got: Array, expected: Array) -> bool:
    """Of what is not finite. Of complex numbers only that neither is: which parts are depends on
    the order of a product's terms, in torch too."""
    if np.iscomplexobj(expected):
        return not np.isfinite(got).any()
    return np.array_equal(got, expected, equal_nan=True)


def _within(
    got: Array, expected: Array, tolerance: Tolerance, name: str, carried: Array | None
) -> Check:
    scale = max(
        (tolerance.scale(expected_part) for _, _, expected_part in _pieces(got, expected)),
        default=0.0,
    )
    worst, detail = Check(True, 0.0, 0.0, 0.0, True), ""
    for start, got_part, expected_part in _pieces(got, expected):
        bound = tolerance.bound(expected_part, scale)
        if carried is not None:
            bound = bound + carried.reshape(-1)[start : start + bound.size]
        with np.errstate(invalid="ignore"):
            error = np.abs(np.where(np.isfinite(expected_part), got_part - expected_part, 0.0))
        ratio = error / np.maximum(bound, np.finfo(np.float64).tiny)
        at = int(ratio.argmax())
        if ratio[at] <= worst.ratio and start:
            continue
        worst = Check(True, float(error[at]), float(bound[at]), float(ratio[at]), True)
        place = ", ".join(str(int(i)) for i in np.unravel_index(start + at, expected.shape))
        detail = f"{name}[{place}] is {got_part[at]:.6g}, the reference {expected_part[at]:.6g}"
    if worst.ratio <= 1:
        return worst
    return replace(worst, passed=False, detail=detail)


def _failed(name: str, why: str) -> Check:
    return Check(False, float("inf"), 0.0, float("inf"), True, f"{name}: {why}")
