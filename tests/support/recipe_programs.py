"""What the tests of recipes run in a copy of the engine.

python -m tests.support.recipe_programs PROGRAM CODE_CACHE
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from scheduler import pipeline
from scheduler.benchmark.verification import verify
from scheduler.build.cache import CodeCache
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle import reader, writer
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph
from scheduler.matrix_instructions import MatrixSet, select
from scheduler.runtime.devices import open_device
from scheduler.targets import Target, find
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.problems import find_problems
from scheduler.tuning.run import SearchOptions, tune
from tests.unit.lowering.graphs import GraphBuilder, Ref
from tests.unit.matrix.contractions import matmul


def op(cache: CodeCache) -> None:
    """Compute ``softsign`` on the CPU, and render it in CuteDSL."""
    x = np.linspace(-3.0, 3.0, 60).reshape(6, 10)
    model = GraphBuilder()
    y = model.call("aten.softsign.default", Ref(model.input(x, DType.F32)), dtype=DType.F32)
    assert np.array_equal(model.values[y], x / (1 + abs(x)))
    cpu = find("cpu")
    plan = _schedule(model.graph(y))
    _verify(pipeline.generate(plan, (cpu,)), cpu, cache)
    (node,) = plan.nodes
    assert "cute.math.abs(" in CuteDSLScheduling(plan, (find("sm_90"),)).default(node).kernel.source


def target(cache: CodeCache) -> None:
    """Compile a product for gfx1103."""
    gfx1103 = find("gfx1103")
    generated = pipeline.generate(matmul(64, 64, 64, DType.F16), (gfx1103,))
    (build,) = _build(generated, gfx1103, cache).values()
    listing = (build.directory / "kernel.s").read_text()
    assert '.amdgcn_target "amdgcn-amd-amdhsa--gfx1103"' in listing
    assert "v_wmma_f32_16x16x16_f16" in listing


def matrix_instruction(cache: CodeCache) -> None:
    """Compute a product with i32_32x32x16_i8 on the emulation, and compile it for the GPU."""
    row = select((MatrixSet.MFMA_I8_K32,), "i8", 32)
    assert row is not None
    assert row.name == "mfma_i32_32x32x16_i8"
    # AMD Matrix Instruction Calculator: A[i][k] is in lane i + 32 * (k / 8), byte k % 8;
    # D[i][j] in lane j + 32 * (i / 4 % 2), register i % 4 + 4 * (i / 8).
    for i in range(32):
        for k in range(16):
            assert row.a.evaluate(i + 32 * (k // 8), k % 8) == (i, k)
        for j in range(32):
            assert row.d.evaluate(j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)) == (i, j)
    model = GraphBuilder()
    a, b = (model.input(np.ones((64, 64)), DType.I8) for _ in range(2))
    y = model.call("aten._int_mm.default", Ref(a), Ref(b), dtype=DType.I32)
    gpu, emulation = find("gfx942"), find("cpu")
    plan = _schedule(model.graph(y))
    backend = pipeline.scheduling(plan, (gpu, emulation))
    (node,) = plan.nodes
    callers = backend.candidates(node).callers
    caller = next(one for one in callers if one.kernel.config.get("MATRIX_INSTR_NONKDIM") == row.m)
    generated = pipeline.generate(plan, (gpu, emulation), lambda _: caller)
    _verify(generated, emulation, cache)
    (build,) = _build(generated, gpu, cache).values()
    assert "v_mfma_i32_32x32x16_i8" in (build.directory / "kernel.s").read_text()


def search_strategy(cache: CodeCache) -> None:
    """Tune a sum on the emulation with the strategy "backward"."""
    cpu = find("cpu")
    model = GraphBuilder()
    y = model.call("aten.sum.default", Ref(model.input(np.ones((32, 32)), DType.F32)))
    plan = _schedule(model.graph(y))
    problems = find_problems(plan, pipeline.scheduling(plan, (cpu,)), cpu, {})
    pool = LocalCompilePool(cpu, lambda *_: bundled_clang(cache), cache, 1, DEFAULT_FLAGS)
    meter = Meter(Budget(60.0, None, 3))
    device = open_device("cpu").info
    result = tune(plan, problems, device, pool, meter, SearchOptions("backward"))
    places = {entry.order: place for place, entry in enumerate(result.entries) if entry.order}
    tried = [place for _, place in sorted(places.items())]
    last = len(problems[0].callers) - 1
    assert tried == [0, last, last - 1], "the default comes first"


def _schedule(graph: Graph) -> Schedule:
    return pipeline.schedule(pipeline.lower(graph))


def _build(
    generated: pipeline.GeneratedCode, target: Target, cache: CodeCache
) -> dict[tuple[str, str], Build]:
    found = pipeline.build_kernels(
        generated.kernels, (target,), lambda *_: bundled_clang(cache), cache
    )
    builds = {key: one for key, one in found.items() if isinstance(one, Build)}
    assert builds.keys() == found.keys(), found
    return builds


def _verify(generated: pipeline.GeneratedCode, target: Target, cache: CodeCache) -> None:
    """Compare a bundle's results with the reference's."""
    builds = _build(generated, target, cache)
    writer.write(
        *(Path("bundle"), generated.schedule, generated.manifest(), generated.kernels, builds)
    )
    findings = verify(reader.open_bundle(Path("bundle")), target.name, {})
    assert findings
    assert all(finding.passed for finding in findings), findings


if __name__ == "__main__":
    globals()[sys.argv[1]](CodeCache(Path(sys.argv[2])))
