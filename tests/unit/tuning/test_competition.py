"""Candidates of two languages for one node: both are searched, and whichever is faster serves."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.model import AbsentToolchain, Build, Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.bundle import reader, writer
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.errors import Rejected
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.targets import Target, find
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.search import Search as TuningSearch
from scheduler.tuning.space import TEMPLATE, Space
from scheduler.tuning.warm_start import PriorResult
from tests.support.caches import KEPT
from tests.unit.lowering.graphs import graph, meta, node

SM_90 = find("sm_90")


@pytest.fixture
def plan() -> Schedule:
    """x * w + x, of as many rows as wanted."""
    rows = symbol("s0")
    tensors = {name: meta(DType.F32, rows, 48) for name in ("x", "product", "sum")}
    tensors["w"] = meta(DType.F32, 48)
    nodes = [
        node("product", "aten.mul.Tensor", Ref("x"), Ref("w")),
        node("sum", "aten.add.Tensor", Ref("product"), Ref("x")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "w")]
    sizes = {"s0": SymbolInfo("s0", 16, 1, 4096)}
    return pipeline.schedule(pipeline.lower(graph(inputs, nodes, tensors, ("sum",), sizes)))


@pytest.fixture
def backend(plan: Schedule) -> BaseScheduling:
    return pipeline.scheduling(plan, (SM_90,))


@pytest.fixture
def problem(plan: Schedule, backend: BaseScheduling) -> TuningProblem:
    (found,) = find_problems(plan, backend, SM_90, {"s0": 16})
    return found


def toolchain_for(target: Target, source_file: str = "") -> Toolchain:
    return pick_toolchain(find_target_toolchains(target, Search()), target, source_file)


def languages(callers: tuple[TemplateCaller, ...]) -> set[str]:
    return {caller.kernel.source_file for caller in callers}


def of(problem: TuningProblem, source_file: str) -> TemplateCaller:
    return next(one for one in problem.callers if one.kernel.source_file == source_file)


def test_a_node_has_the_candidates_of_both_and_the_default_of_the_base(
    plan: Schedule, backend: BaseScheduling
) -> None:
    (only,) = plan.nodes
    assert languages(backend.candidates(only).callers) == {"source.hip", "source.py"}
    assert backend.default(only).kernel.source_file == "source.hip"
    amd = pipeline.scheduling(plan, (find("gfx942"),))
    assert languages(amd.candidates(only).callers) == {"source.hip"}


def test_a_source_for_all_targets_has_no_competitor(plan: Schedule) -> None:
    both = pipeline.scheduling(plan, (SM_90, find("gfx942")))
    assert languages(both.candidates(plan.nodes[0]).callers) == {"source.hip"}


def test_the_search_knows_candidates_of_two_templates_apart(problem: TuningProblem) -> None:
    templates = {config[TEMPLATE] for config in problem.configs}
    assert templates == {caller.kernel.template for caller in problem.callers}
    assert len(templates) == 2
    assert len({tuple(sorted(c.items())) for c in problem.configs}) == len(problem.callers)
    space = Space(problem.configs)
    assert TEMPLATE in space.parameters
    own = [config[TEMPLATE] == problem.configs[0][TEMPLATE] for config in problem.configs]
    column = space.coordinates[:, space.parameters.index(TEMPLATE)]
    assert {(bool(mine), float(at)) for mine, at in zip(own, column, strict=True)} in (
        {(True, 0.0), (False, 1.0)},
        {(True, 1.0), (False, 0.0)},
    )


def test_what_won_before_is_tried_early_in_its_own_template(problem: TuningProblem) -> None:
    won = of(problem, "source.py")
    known = PriorResult(problem.shape, won.kernel.config, won.kernel.template)
    search = TuningSearch(problem.configs, np.random.default_rng(0), first=[known.search_config])
    assert search.ask() == 0, "the default"
    second = search.ask()
    assert second is not None and problem.callers[second].name == won.name


def test_without_its_compiler_each_candidate_of_a_language_is_refused(
    problem: TuningProblem, cache: CodeCache
) -> None:
    def hip_alone(target: Target, source_file: str = "") -> Toolchain:
        found = find_target_toolchains(target, Search())
        absent = AbsentToolchain("cutedsl", "nvidia-cutlass-dsl is not installed")
        kept = [absent if one.name == "cutedsl" else one for one in found]
        return pick_toolchain(kept, target, source_file)

    pool = LocalCompilePool(SM_90, hip_alone, cache, 1)
    try:
        result = pool.submit(of(problem, "source.py")).result()
        assert isinstance(result, Rejected)
        assert "nvidia-cutlass-dsl is not installed" in result.reason
        assert isinstance(pool.submit(of(problem, "source.hip")).result(), Build)
    finally:
        pool.close()


@pytest.mark.full
def test_a_bundle_holds_kernels_of_the_language_that_was_chosen(
    plan: Schedule,
    problem: TuningProblem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    won = of(problem, "source.py")

    def choose(node: SchedulerNode) -> TemplateCaller:
        backend = pipeline.scheduling(plan, (SM_90,))
        return backend.generate(node, won.kernel.template, won.kernel.config)

    generated = pipeline.generate(plan, (SM_90,), choose)
    (kernel,) = generated.kernels
    assert kernel.name == won.name and kernel.name.startswith("cutedsl_fused_add_mul_")
    built = pipeline.build_kernels(generated.kernels, (SM_90,), toolchain_for, KEPT)
    builds = {key: one for key, one in built.items() if isinstance(one, Build)}
    assert builds.keys() == built.keys(), built
    out = tmp_path / "bundle"
    writer.write(out, plan, generated.manifest(), generated.kernels, builds)
    bundle = reader.open_bundle(out)
    assert bundle.manifest.kernels[kernel.name].source == f"kernels/{kernel.name}/source.py"
    assert bundle.library(kernel.name, "sm_90").read_bytes()[:4] == b"\x7fELF"
    names = {path.name for path in (out / f"kernels/{kernel.name}/sm_90").iterdir()}
    assert names == {"kernel.s", "kernel.cubin", "kernel.ptx", "kernel.so", "build.json"}
    facts = json.loads((out / f"kernels/{kernel.name}/sm_90/build.json").read_text())
    assert set(facts["resources"]) == {one.function for one in kernel.launches}
    wrapper = importlib.util.spec_from_file_location("wrapper", out / "wrapper.py")
    assert wrapper is not None and wrapper.loader is not None
    module = importlib.util.module_from_spec(wrapper)
    wrapper.loader.exec_module(module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(module.ctypes, "CDLL", _absent)
    with pytest.raises(SystemExit, match="kernels in CuteDSL need it: pip install nvidia-cutlass"):
        module._load_cutedsl()


def _absent(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")
