"""What passes as a scaled product of 8 bits: sums in f32 in any order, and nothing that is wrong by
a step of k, a scale, or a narrower sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from scheduler.benchmark.case import Case
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import from_storage_native, to_storage
from tests.support.scaled_products import by_blocks, by_lines, dequantized

F8, F16, BF16, F32 = DType.F8E4M3FN, DType.F16, DType.BF16, DType.F32
M, N, K = 40, 48, 1024
PROBLEMS: Mapping[str, Callable[[], Schedule]] = {
    f"{name}, {label}": made
    for label, out in (("f32", F32), ("bf16", BF16), ("f16", F16))
    for name, made in (
        ("by lines", lambda out=out: by_lines(M, N, K, F8, out)),
        ("by lines, e5m2", lambda out=out: by_lines(M, N, K, DType.F8E5M2, out)),
        ("by rows", lambda out=out: dequantized(M, N, K, F8, out)),
        ("int8 by rows", lambda out=out: dequantized(M, N, K, DType.I8, out)),
        ("by blocks", lambda out=out: by_blocks(M, N, K, F8, out)),
    )
}


def case_of(name: str, *, moved: bool) -> Case:
    plan = PROBLEMS[name]()
    return make_case(
        plan.nodes[-1], plan.lowered, {}, np.random.default_rng(7), with_roundings=moved
    )


def operands(case: Case) -> tuple[Any, Any, Any, Any]:
    """x [M, K], w [N, K] with its scales where they are read, and those that come after the sum."""
    held = {
        name: from_storage_native(storage, case.buffers[name]).astype(np.float64)
        for name, storage in case.inputs.items()
    }
    x, w = held["x"], held["w"]
    if "sx" in held:
        return x, w, held["sx"], held["sw"]
    blocks = held["s"].reshape(N, -1)
    return x, w * np.repeat(blocks, K // blocks.shape[1], axis=1), 1.0, 1.0


def checked(case: Case, got: Any) -> bool:
    ((name, expected),) = case.expected.items()
    storage = to_storage(np.asarray(got).reshape(expected.shape), case.buffers[name])
    return check_outputs(case, {name: storage}, ()).passed


def summed(x: Any, w: Any, dtype: Any, step: int) -> Any:
    """Of ``step`` products at a time, in order."""
    total = np.zeros((M, N), dtype)
    for first in range(0, K, step):
        part = slice(first, first + step)
        total = (total + (x[:, part] @ w[:, part].T).astype(dtype)).astype(dtype)
    return total.astype(np.float64)


@pytest.mark.parametrize("name", PROBLEMS)
def test_sums_in_f32_pass_whatever_their_order(name: str) -> None:
    case = case_of(name, moved=False)
    x, w, before, after = operands(case)
    for step in (1, 16, 128):
        assert checked(case, summed(x, w, np.float32, step) * before * after)
    order = np.argsort(np.abs(x).sum(0))  # the greatest last
    assert checked(case, summed(x[:, order], w[:, order], np.float32, 1) * before * after)


@pytest.mark.parametrize("moved", [False, True], ids=["", "moved"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_wrong_ones_do_not_pass(name: str, moved: bool) -> None:
    """Not by what drawn roundings move either, which a second look admits."""
    case = case_of(name, moved=moved)
    x, w, before, after = operands(case)
    exact = x @ w.T
    assert checked(case, exact * before * after)
    missing = exact - x[:, :16] @ w[:, :16].T
    assert not checked(case, missing * before * after), "a step of k is missing"
    if DType.BF16 is not case.buffers["x"].dtype:  # bf16's own rounding is coarser than f16's sums
        halved = summed(x, w, np.float16, 1)
        assert not checked(case, halved * before * after), "summed in f16"
    if isinstance(before, float):
        (scales,) = (from_storage_native(case.inputs["s"], case.buffers["s"]).reshape(N, -1),)
        own = np.repeat(scales, K // scales.shape[1], axis=1).astype(np.float64)
        neighbours = x @ (w / own * np.roll(own, 1, axis=0)).T
        assert not checked(case, neighbours), "the scale of the row before"
    else:
        assert not checked(case, exact * np.roll(before, 1, axis=0) * after)
        assert not checked(case, exact * before * np.roll(after, 1, axis=1))
