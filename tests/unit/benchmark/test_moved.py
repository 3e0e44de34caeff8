"""What the bound admits where rounding errors are large beside the result, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.benchmark.case import Case
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs, compare_output
from scheduler.benchmark.tolerance import Tolerance
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.ir.storage import from_storage_native, to_storage
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node

X = [GraphInput("x", InputKind.USER)]
ROWS = 4000


def quotients(*, moved: bool) -> Case:
    """Rows over their sums: some of these sums nearly cancel."""
    tensors = {"x": meta(DType.F32, ROWS, 4), "total": meta(DType.F32, ROWS, 1)}
    tensors["y"] = meta(DType.F32, ROWS, 4)
    nodes = [
        node("total", "aten.sum.dim_IntList", Ref("x"), (1,), True),
        node("y", "aten.div.Tensor", Ref("x"), Ref("total")),
    ]
    plan = schedule(lower(graph(X, nodes, tensors, ("y",))))
    (one,) = plan.nodes
    return make_case(one, plan.lowered, {}, np.random.default_rng(3), with_roundings=moved)


def checked(case: Case, got: np.ndarray) -> bool:
    (name,) = case.expected
    return check_outputs(case, {name: to_storage(got, case.buffers[name])}, ()).passed


def in_float32(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The input, and the quotients as a kernel makes them."""
    ((name, storage),) = case.inputs.items()
    x = from_storage_native(storage, case.buffers[name]).astype(np.float32)
    total = ((x[:, 0] + x[:, 1]) + x[:, 2]) + x[:, 3]
    return x, x / total[:, None]


def test_a_right_kernel_passes_where_sums_cancel() -> None:
    for moved in (False, True):
        case = quotients(moved=moved)
        assert checked(case, in_float32(case)[1])


def test_a_wrong_kernel_still_fails() -> None:
    """By one element left out of one ordinary row's sum, or by a thousandth everywhere."""
    case = quotients(moved=True)
    x, right = in_float32(case)
    ordinary = int(np.argmax(np.abs(x.sum(1))))
    wrong = right.copy()
    wrong[ordinary] = x[ordinary] / x[ordinary, :3].sum()
    assert not checked(case, wrong)
    assert not checked(case, right * np.float32(1.001))
    special = right.copy()
    special[ordinary, 2] = np.inf
    assert not checked(case, special)


@pytest.mark.parametrize(("dtype", "end"), [(DType.F16, 65520.0), (DType.BF16, 3.3961775e38)])
def test_what_leaves_the_range_of_its_type_is_infinite_in_it(dtype: DType, end: float) -> None:
    expected = np.array([1.0, 2 * end, -3 * end, 0.9999 * end])
    bound = Tolerance(1e-3, 1e-6)

    def passes(*got: float) -> bool:
        return compare_output(np.array(got), expected, bound, "y", dtype=dtype).passed

    assert passes(1.0, np.inf, -np.inf, 0.9999 * end)
    assert passes(1.0, np.inf, -np.inf, np.inf), "so near to the end of the range either is right"
    assert not passes(1.0, np.inf, np.inf, 0.9999 * end)
    assert not passes(1.0, 0.99 * end, -np.inf, 0.9999 * end)
    assert not passes(np.inf, np.inf, -np.inf, 0.9999 * end)
    assert not passes(1.0, np.nan, -np.inf, 0.9999 * end)
    found = compare_output(np.array([1.01, np.inf]), expected[:2], bound, "y", dtype=dtype)
    assert not found.passed, "what overflows sets no scale"
