"""The correctness gate: nothing is timed before it gave the right answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.tolerance import Tolerance
from scheduler.ir.storage import Array, from_storage


def judge(case: Case, storages: Mapping[str, Array], damaged: tuple[str, ...]) -> Check:
    """Compare the outputs' storages with the reference; the worst element decides."""
    worst = Check(True, 0.0, 0.0, 0.0, not damaged)
    for name, expected in case.expected.items():
        got = from_storage(storages[name], case.buffers[name])
        found = compare(got, expected, case.tolerances[name], name)
        if found.ratio > worst.ratio or not found.passed:
            worst = found
            if not found.passed:
                break
    if damaged:
        detail = f"wrote outside its outputs: {', '.join(damaged)}"
        return Check(False, worst.max_error, worst.bound, worst.ratio, False, detail)
    return worst


def compare(got: Array, expected: Array, tolerance: Tolerance, name: str) -> Check:
    """Judge one output. NaN must be where the reference has NaN, infinities likewise."""
    if got.shape != expected.shape:
        return _failed(name, f"shape {got.shape} where {expected.shape} was due")
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = np.count_nonzero(got != expected)
        if wrong:
            return _failed(name, f"{wrong} of {expected.size} elements differ")
        return Check(True, 0.0, 0.0, 0.0, True)
    odd = ~np.isfinite(expected)
    same_odd = np.array_equal(got[odd], expected[odd], equal_nan=True)
    stray = np.count_nonzero(~np.isfinite(got[~odd]))
    if not same_odd or stray:
        return _failed(name, f"{stray} elements are NaN or infinite, or NaNs lie elsewhere")
    return _within(got, expected, tolerance, name)


def _within(got: Array, expected: Array, tolerance: Tolerance, name: str) -> Check:
    bound = tolerance.bound(expected)
    with np.errstate(invalid="ignore"):
        error = np.abs(np.where(np.isfinite(expected), got - expected, 0.0))
    if error.size == 0:
        return Check(True, 0.0, 0.0, 0.0, True)
    ratio = error / np.maximum(bound, np.finfo(np.float64).tiny)
    at = np.unravel_index(int(ratio.argmax()), ratio.shape)
    worst, limit, highest = float(error[at]), float(bound[at]), float(ratio[at])
    where = f"{name}[{', '.join(str(int(i)) for i in at)}]"
    detail = (
        ""
        if highest <= 1
        else (f"{where} is {float(got[at]):.6g}, the reference {float(expected[at]):.6g}")
    )
    return Check(highest <= 1, worst, limit, highest, True, detail)


def _failed(name: str, why: str) -> Check:
    return Check(False, float("inf"), 0.0, float("inf"), True, f"{name}: {why}")
