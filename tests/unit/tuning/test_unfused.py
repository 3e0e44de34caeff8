"""Fused kernels split again: whole models can be run so, and only a clear gain splits one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import scheduler.samples
from scheduler import pipeline
from scheduler.bundle.manifest import Manifest
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.fusion.split import part_names, split_nodes
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from scheduler.tuning.fusion_comparison import compare_fusion, unfuse_all
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.tuner import ProblemResult, TuningResult
from tests.unit.matrix.contractions import matmul
from tests.unit.tuning.test_ledger import decide, entry

SAMPLES = Path(scheduler.samples.__file__).parent / "graphs"
TARGET = find("gfx942")


@pytest.fixture(scope="module", params=["gpt2_2layer", "resnet_small"])
def plan(request: pytest.FixtureRequest) -> Schedule:
    """A real model, fused."""
    return pipeline.schedule(pipeline.lower(pipeline.load(SAMPLES / f"{request.param}.pt2")))


@pytest.mark.full(but=["gpt2_2layer"])
def test_everything_split_computes_the_same_buffers_in_a_legal_order(plan: Schedule) -> None:
    everything, parts = unfuse_all(plan)  # verified on the way
    assert len(everything.nodes) > len(plan.nodes)
    assert set(parts) == set(everything.split)
    names = {node.name for node in everything.nodes}
    assert all(set(each) <= names and len(each) > 1 for each in parts.values())
    kept = {name for node in plan.nodes for name in node.writes}
    assert kept <= {name for node in everything.nodes for name in node.writes}
    assert len(names) == len(everything.nodes)


def test_each_node_can_be_split_by_itself(plan: Schedule) -> None:
    whole = [node.name for node in plan.nodes]
    for name in split_nodes(plan, whole).split:
        single = split_nodes(plan, [name])
        assert single.split == (name,)
        parts = set(part_names(plan, name))
        assert {node.name for node in single.nodes} == {*whole, *parts} - {name}


def test_a_bundle_remembers_what_was_split(plan: Schedule) -> None:
    name = unfuse_all(plan)[0].split[0]
    generated = pipeline.generate(split_nodes(plan, [name]), [TARGET])
    written = generated.manifest().to_json()
    assert written["split"] == [name]
    assert Manifest.from_json(written).split == (name,)


def test_nothing_named_changes_nothing(plan: Schedule) -> None:
    same = split_nodes(plan, [])
    assert same.nodes == plan.nodes
    assert same.split == ()


def problem(*nodes: str) -> TuningProblem:
    """A problem that serves these scheduler nodes."""
    schedule = matmul(32, 32, 32, DType.F16)
    (made,) = find_problems(schedule, ROCmCPPScheduling(schedule, (TARGET,)), TARGET, {})
    return replace(made, nodes=nodes)


def result(times: Iterable[tuple[str, float | None]]) -> TuningResult:
    """A run in which these nodes took these times, with intervals of 1 ns to both sides."""
    problems = []
    for name, median in times:
        entries = [entry("k", median, 1.0 if median else 0.0)]
        problems.append(ProblemResult(problem(name), tuple(decide(entries, {0})), 0.0))
    return TuningResult(tuple(problems), 0.0, 0, 0, "")


@pytest.mark.parametrize(
    ("fused", "parts", "unfused_is_faster"),
    [(20, (5, 6), True), (11, (5, 6), False), (13, (5, 6), False), (20, (5, None), False)],
)
def test_only_a_gain_beyond_the_noise_splits_a_fused_kernel(
    fused: float, parts: tuple[float | None, float | None], unfused_is_faster: bool
) -> None:
    names = ("a_alone", "b_alone")
    run = result([("a", fused), *zip(names, parts, strict=True)])
    (found,) = compare_fusion(run, {"a": names})
    assert found.unfused_is_faster is unfused_is_faster
    assert found.fused_ns == fused
    assert found.unfused_ns == (11 if None not in parts else None)
    assert found.to_json()["apart"] is unfused_is_faster, "readers of the first ledgers"
