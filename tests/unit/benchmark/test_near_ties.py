"""Indices of computed keys: those that are equal but for rounding may stand either way round, and
nothing else gets past the gate with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scheduler.benchmark.case import Case
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.ir.operations import GroupKind
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node

ROWS, LENGTH = 4, 300


def _case(folder: Path, *, computed: bool) -> Case:
    """Indices that sort columns of x, or of exp(x) fused into the sort; read from a file again."""
    tensors = {name: meta(DType.F32, LENGTH, ROWS) for name in ("x", "key", "values")}
    tensors["places"] = meta(DType.I64, LENGTH, ROWS)
    key = node("key", "aten.exp.default", Ref("x"))
    sort = node("values", "aten.sort.default", Ref("key" if computed else "x"), 0)
    sort = type(sort)(sort.name, sort.target, sort.args, sort.kwargs, ("values", "places"))
    nodes = [key, sort] if computed else [sort]
    inputs = [GraphInput("x", InputKind.USER)]
    plan = schedule(lower(graph(inputs, nodes, tensors, ("places",))))
    (kernel,) = plan.nodes
    assert kernel.kind is GroupKind.SORT
    make_case(kernel, plan.lowered, {}, np.random.default_rng(5)).save(folder)
    return Case.load(folder)


def _passes(case: Case, got: np.ndarray) -> bool:
    (name,) = case.expected
    return check_outputs(case, {name: got.reshape(-1)}, ()).passed


def _swapped(case: Case, row: int, place: int) -> np.ndarray:
    """The indices with two neighbours of a row the other way round."""
    (expected,) = case.expected.values()
    got = expected.copy()
    got[[place, place + 1], row] = got[[place + 1, place], row]
    return got


def _gaps(case: Case) -> np.ndarray:
    """How far apart neighbours are, in order, by row."""
    (x,), (expected,) = case.inputs.values(), case.expected.values()
    keys = np.exp(x.reshape(LENGTH, ROWS).astype(np.float64))
    return np.diff(np.take_along_axis(keys, expected, 0), axis=0)


def test_keys_that_rounding_may_exchange_are_right_either_way(tmp_path: Path) -> None:
    case = _case(tmp_path, computed=True)
    (expected,) = case.expected.values()
    assert _passes(case, expected)
    gaps = _gaps(case)
    place, row = np.unravel_index(gaps.argmin(), gaps.shape)
    assert gaps.min() < 1e-5
    assert _passes(case, _swapped(case, int(row), int(place)))


def test_others_are_not(tmp_path: Path) -> None:
    case = _case(tmp_path, computed=True)
    (expected,) = case.expected.values()
    place = int(_gaps(case)[:, 1].argmax())
    assert not _passes(case, _swapped(case, 1, place))
    twice = expected.copy()
    near = int(_gaps(case)[:, 2].argmin())
    twice[near + 1, 2] = twice[near, 2]
    assert not _passes(case, twice), "an element stands twice"
    outside = expected.copy()
    outside[0, 0] = LENGTH
    assert not _passes(case, outside)


def test_keys_that_are_read_have_one_order(tmp_path: Path) -> None:
    case = _case(tmp_path, computed=False)
    (expected,) = case.expected.values()
    assert case.keys == {} and _passes(case, expected)
    assert not _passes(case, _swapped(case, 0, 7))
