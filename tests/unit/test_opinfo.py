"""The judge of ops sees what is wrong: values, shapes, types, kernels, processes that die."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from scheduler.benchmark.tolerance import kernel_tolerance
from scheduler.ir.dtypes import DType
from scheduler.lowering import ops
from tests.benchmarks.opinfo import exceptions, judging, report, running
from tests.benchmarks.opinfo.comparing import (
    Expected,
    beside_reference,
    beside_torch,
    equal_places,
)
from tests.benchmarks.opinfo.database import Use, database, dtypes_of, spread, uses
from tests.benchmarks.opinfo.judging import Level, Tools, Verdict, judge


def some(op: str, dtype: str, count: int) -> list[Use]:
    return [use for use, _ in zip(uses(op, dtype), range(count), strict=False)]


def judged(level: Level, folder: Path, *chosen: Use) -> list[Verdict]:
    found = judge(chosen, Tools(level, folder / "cache", flags="-O0"))
    return sorted(found, key=lambda v: [(u.op, u.dtype, u.index) for u in chosen].index(_key(v)))


def _key(verdict: Verdict) -> tuple[str, str, int]:
    return verdict.op, verdict.dtype, verdict.index


@pytest.mark.long
def test_right_ops_pass_at_every_level(tmp_path: Path) -> None:
    chosen = [*some("sub", "f32", 2), *some("cumsum", "f64", 2), *some("mm", "bf16", 1)]
    found = judged(Level.KERNELS, tmp_path, *chosen, *some("argmax", "i64", 1))
    assert [(v.op, v.failed, v.reason) for v in found if v.failed] == []
    assert len(found) == 6


@pytest.mark.full
def test_the_samples_are_the_same_at_every_call() -> None:
    first, second = some("sub", "f32", 3), some("sub", "f32", 3)
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one.tensors, other.tensors, strict=True):
            assert torch.equal(a, b)
    assert {"f32", "i64", "b8"} <= set(dtypes_of("mul"))
    assert "std.unbiased" in database()


def test_a_wrong_reference_is_seen_in_its_own_uses_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ops.resolve_op("aten.sin.default").op
    wrong = replace(row, reference=lambda args: np.sin(args["self"]) + 1e-5)
    monkeypatch.setattr(ops, "_ROW_OF_TARGET", {**ops._ROW_OF_TARGET, "aten.sin.default": wrong})
    ops._overload.cache_clear()
    try:
        found = judged(Level.REFERENCE, tmp_path, *some("sin", "f64", 1), *some("cos", "f64", 1))
    finally:
        monkeypatch.undo()
        ops._overload.cache_clear()
    assert [(v.op, v.failed) for v in found] == [("sin", "reference"), ("cos", "")]
    assert "torch" in found[0].reason


@pytest.mark.long
def test_a_wrong_operation_and_a_wrong_kernel_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = judging.run_schedule

    def off(*args: Any) -> Any:
        return {name: value + 1 for name, value in right(*args).items()}

    monkeypatch.setattr(judging, "run_schedule", off)
    (found,) = judged(Level.INTERPRET, tmp_path, *some("sub", "f32", 1))
    assert found.failed == "interpret"
    monkeypatch.setattr(judging, "run_schedule", right)
    run_on = judging.run_on
    monkeypatch.setattr(
        judging, "run_on", lambda *args: {name: -v for name, v in run_on(*args).items()}
    )
    (found,) = judged(Level.KERNELS, tmp_path, *some("sub", "f32", 1))
    assert found.failed == "kernels"


def test_what_torch_does_not_export_is_no_pass_and_takes_no_other_with_it(tmp_path: Path) -> None:
    chosen = [*some("sub", "f32", 1), *some("equal", "f32", 1), *some("neg", "f32", 1)]
    chosen[1] = replace(chosen[1], function=lambda x, *_: x.tolist() if x.sum() else x)
    found = judged(Level.REFERENCE, tmp_path, *chosen)
    assert [(v.op, v.failed) for v in found] == [("sub", ""), ("equal", "export"), ("neg", "")]
    assert str(report.counts(found)).startswith("2 of 2 right")
    assert report.counts(found).not_exported == 1


def test_a_number_among_results_keeps_its_place(tmp_path: Path) -> None:
    found = judged(Level.REFERENCE, tmp_path, *some("item", "i64", 1), *some("neg", "i64", 1))
    assert [(v.op, v.failed) for v in found][1:] == [("neg", "")]


def test_values_at_random_are_compared_in_shape_alone(tmp_path: Path) -> None:
    (found,) = judged(Level.INTERPRET, tmp_path, *some("rand_like", "f32", 1))
    assert (found.failed, found.reason) == ("", "")


def test_a_size_that_depends_on_data_is_its_own_uses_alone(tmp_path: Path) -> None:
    chosen = [*some("nonzero", "f32", 1), *some("neg", "f32", 1)]
    assert judged(Level.INTERPRET, tmp_path, *chosen)[1].failed == ""


def test_an_unknown_op_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ops,
        "_ROW_OF_TARGET",
        {name: row for name, row in ops._ROW_OF_TARGET.items() if "cosh" not in name},
    )
    ops._overload.cache_clear()
    (found,) = judged(Level.REFERENCE, tmp_path, *some("cosh", "f32", 1))
    monkeypatch.undo()
    ops._overload.cache_clear()
    assert found.failed == "reference"
    assert found.reason.startswith("aten.cosh.default: unknown op (node cosh ")


@pytest.mark.parametrize(
    ("got", "own", "said"),
    [
        (np.zeros((1,)), torch.zeros(()), "shape"),
        (np.array([1.0, 2.1]), torch.tensor([1.0, 2.0]), "[1] is 2.1"),
        (np.array([1.0, 2.0]), torch.tensor([1.0, float("nan")]), "nan"),
        (np.array([1, 2]), torch.tensor([1, 3]), "1 of 2 wrong"),
        (np.array([1.0]), torch.tensor([1.0]), ""),
        (np.array([np.nan]), torch.tensor([float("nan")]), ""),
    ],
)
def test_results_beside_torchs(got: Any, own: Any, said: str) -> None:
    found = beside_torch(got, Expected(own, None))
    assert said in found
    assert bool(found) == bool(said)


def test_a_result_may_be_torchs_in_float64_or_in_its_own_type() -> None:
    own, wide = torch.tensor([0.5003], dtype=torch.float16), torch.tensor([0.49]).double()
    assert beside_torch(np.array([0.5003]), Expected(own, wide)) == ""
    assert beside_torch(wide.numpy(), Expected(own, wide)) == ""
    assert beside_torch(np.array([0.48]), Expected(own, wide)) != ""


def test_of_equal_elements_an_unstable_sort_may_take_any() -> None:
    values, torchs = torch.tensor([[2, 1, 2, 3]]), torch.tensor([[1, 0, 2, 3]])
    assert equal_places(np.array([[1, 2, 0, 3]]), torchs, values)
    assert not equal_places(np.array([[0, 1, 2, 3]]), torchs, values)
    assert not equal_places(np.array([[1, 2, 0, 4]]), torchs, values)
    assert equal_places(np.array([2]), torch.tensor([0]), values)  # its dimension is gone


def test_a_kernel_is_held_to_the_engines_own_bound() -> None:
    tolerance, torchs = kernel_tolerance(DType.F32, DType.F32, 1), Expected(torch.ones(2) * 9, None)
    near, far = np.array([1.0, 1 + 1e-7]), np.array([1.0, 1.0001])
    assert beside_reference(near, np.ones(2), torchs, tolerance) == ""
    assert "the reference 1" in beside_reference(far, np.ones(2), torchs, tolerance)
    assert "shape" in beside_reference(near[:1], np.ones(2), torchs, tolerance)


def test_a_process_that_dies_takes_one_use_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(chosen: Sequence[Use], tools: Tools) -> Iterator[Verdict]:
        tools.begin(chosen, "compile")
        for use in chosen:
            tools.begin([use], "kernels")
            if use.index == 1:
                os._exit(7)
            yield Verdict(use.op, use.dtype, use.index)

    monkeypatch.setattr(running, "judge", deadly)
    database()
    tasks = [task for op in ("sub", "cos") for task in running.tasks_of(op, ["f32"], None, {})]
    found = list(running.verdicts(tasks, Tools(Level.REFERENCE, tmp_path), jobs=2))
    assert {(v.op, v.failed) for v in found if v.index == 1} == {
        ("sub", "kernels"),
        ("cos", "kernels"),
    }
    others = [v for v in found if v.index != 1]
    assert others and not any(v.failed for v in others)
    assert "status 7" in next(v.reason for v in found if v.failed)


def test_a_fault_of_the_judge_itself_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(chosen: Sequence[Use], tools: Tools) -> Iterator[Verdict]:
        raise KeyError("of the judge")
        yield

    monkeypatch.setattr(running, "judge", broken)
    tasks = list(running.tasks_of("sin", ["f32"], 1, {}))
    with pytest.raises(RuntimeError, match="of the judge"):
        list(running.verdicts(tasks, Tools(Level.REFERENCE, tmp_path), jobs=1))


def test_an_exception_is_counted_apart_and_one_that_passes_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = exceptions.Exempt(("a*",), "because", ("f32",), "unknown op")
    monkeypatch.setattr(exceptions, "exceptions", lambda: (known,))
    wrong = Verdict("abs", "f32", 0, "reference", "aten.abs.default: unknown op")
    other = Verdict("abs", "f32", 1, "reference", "another")
    right = Verdict("abs", "f64", 0)
    assert report.counts([wrong, right]).rate == 1
    assert report.faults([wrong, other, right]) == [other]
    assert report.counts([wrong, other, right]).rate == 0.5
    assert list(exceptions.needless([wrong, right])) == []
    assert list(exceptions.needless([right])) == []  # nothing of its type was tried
    assert list(exceptions.needless([replace(wrong, failed="", reason="")])) == [known]


def test_exceptions_of_an_older_torch_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs may be put together here."""
    right, wrong = Verdict("abs", "f32", 0), Verdict("abs", "f32", 0, "reference", "nan")
    for before, due in (("2.0", []), ("99.0", [right])):
        old = exceptions.Exempt(("abs",), "because", before=before)
        monkeypatch.setattr(exceptions, "exceptions", lambda old=old: (old,))
        assert list(exceptions.needless([right])) == ([old] if due else [])
        assert exceptions.exempt(wrong) is old


def test_long_ops_are_shared_among_tasks() -> None:
    tasks = list(running.tasks_of("sub", ["f32", "f64"], None, {"f32": 500, "f64": 400}))
    shares = [[use.name for use in task.uses()] for task in tasks]
    (whole,) = running.tasks_of("sub", ["f32", "f64"], None, {})
    assert len(shares) == 3
    shared = [name for share in shares for name in share]
    assert sorted(shared) == sorted(use.name for use in whole.uses())


def test_runs_are_kept_and_put_together(tmp_path: Path) -> None:
    found = [Verdict("abs", "f32", 0), Verdict("abs", "f32", 1, "kernels", "no", ("aten.x",))]
    (tmp_path / "run.jsonl").write_text("".join(report.line(one) for one in found))
    assert report.load(tmp_path / "run.jsonl") == found
    text = "\n".join(report.lines(found))
    assert "f32\t1\t2" in text
    assert "kernels: no (f32 #1)" in text


@pytest.mark.parametrize(
    ("count", "wanted", "places"),
    [(5, None, [0, 1, 2, 3, 4]), (9, 3, [0, 4, 8]), (2, 5, [0, 1]), (7, 1, [0]), (0, 3, [])],
)
def test_a_sample_is_spread_from_first_to_last(
    count: int, wanted: int | None, places: list[int]
) -> None:
    assert spread(count, wanted) == places
