"""Rows for the tests of the pages: small, related as the services relate them, and any number.

Kernels are compiled by the real compiler; times are made up, which is why they are here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from codegen_app.graphs.models import Graph, GraphNode, Problem, TemplateNode, TorchComparison
from codegen_app.kernels.modelling.jobs import report_fields
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse, Modelling, ProblemWork
from codegen_app.kernels.services.builds import stored_files
from codegen_app.platform import artifacts
from codegen_app.tuning.models import (
    BenchmarkResult,
    Candidate,
    Environment,
    Selection,
    TuningRun,
    TuningTask,
)
from codegen_app.workers.models import State
from codegen_app.workers.models.worker import Worker
from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build as Built
from scheduler.build.model import Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.build.toolchains import bundled_clang
from scheduler.cycles.report import VERSION, Report

SOURCE = """// # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
// # Graph fragment:
// #   %linear_0 : Tensor "f32[64, 64]" = call_function[target=torch.ops.aten.addmm.default]
#include <hip/hip_runtime.h>

__global__ __launch_bounds__(BLOCK) void NAME_device(const float* x, float* y, int n) {
  __shared__ float tile[BLOCK];
  float acc = 0.0f;
  for (int i = threadIdx.x; i < n; i += BLOCK) {
    acc += x[i] * x[i];
  }
  tile[threadIdx.x] = acc;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int j = 0; j < BLOCK; ++j) sum += tile[j];
    y[blockIdx.x] = sum;
  }
}

extern "C" __attribute__((visibility("default"))) int NAME(
    const float* x, float* y, int n, size_t* workspace_size, unsigned char* workspace,
    hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(NAME_device, dim3(1), dim3(BLOCK), 0, stream, x, y, n);
  return 0;
}
"""


@dataclass
class World:
    """What was made; tests start from these."""

    graph: Graph
    nodes: list[TemplateNode]
    kernels: list[GeneratedKernel]
    run: TuningRun


def make_world(
    cache: Path, name: str = "tiny", layers: int = 1, candidates: int = 2, compiled: int = 1
) -> World:
    """A graph of ``layers`` blocks (linear, gelu, view, add), prepared, partly built and measured.

    The first ``compiled`` kernels are compiled for gfx942 and gfx1100.
    """
    graph = make_graph(name, layers)
    make_torch_comparison(graph)
    nodes = [_template_node(graph, layer, candidates) for layer in range(layers)]
    kernels = list(
        GeneratedKernel.objects.filter(uses__template_node=nodes[0]).order_by("uses__position")
    )
    builds = {kernel.pk: make_build(kernel, "gfx942", cache) for kernel in kernels[:compiled]}
    for kernel in kernels[:compiled]:
        make_build(kernel, "gfx1100", cache)
    run = _run(graph, nodes, kernels, builds)
    Worker.objects.get_or_create(
        name="worker-1",
        defaults={
            "host": "host",
            "pid": 1,
            "queues": ["compile", "measure.cpu"],
            "devices": [{"id": "cpu", "name": "CPU emulation", "target": "cpu"}],
            "absent": [{"kind": "rocm", "reason": "libamdhip64.so is not there"}],
            "started_at": timezone.now(),
            "seen_at": timezone.now(),
        },
    )
    return World(graph, nodes, kernels, run)


def make_graph(name: str, layers: int) -> Graph:
    """The graph alone, with four nodes a layer and nothing scheduled."""
    graph = Graph.objects.create(
        name=name,
        digest=_digest(f"graph {name} {layers}"),
        producer="torch 2.13.0",
        file=artifacts.store(f"file of {name} {layers}".encode(), ".pt2"),
        symbols={"s0": {"hint": 64, "min": 2, "max": None}},
        inputs=[{"name": "x", "kind": "input", "source_name": ""}],
        outputs=[f"add_{layers - 1}"],
        node_count=4 * layers,
        state=State.DONE,
        decisions=[
            {"producer": f"op{n}", "consumer": f"op{n}_gelu", "fused": n % 2 == 0, "reason": "same"}
            for n in range(layers)
        ],
        targets=["gfx942", "gfx1100"],
    )
    GraphNode.objects.bulk_create(
        _graph_node(graph, layer, step) for layer in range(layers) for step in range(4)
    )
    return graph


def make_torch_comparison(graph: Graph, **fields: Any) -> TorchComparison:
    """torch agrees with each output of the graph, unless ``fields`` say something else."""
    done = {
        "state": State.DONE,
        "oracle": "torch 2.13.0",
        "bindings": {name: symbol["hint"] for name, symbol in graph.symbols.items()},
        "findings": [finding(output) for output in graph.outputs],
        "finished_at": timezone.now(),
    }
    return TorchComparison.objects.create(graph=graph, **done | fields)


def finding(output: str = "y", **fields: Any) -> dict[str, Any]:
    """One that passed with an error of 0.08 of its bound, unless ``fields`` say something else."""
    passed = {"passed": True, "max_error": 8e-7, "bound": 1e-5, "ratio": 0.08, "detail": ""}
    return {"output": output, **passed, **fields}


_STEPS = (("linear", "aten.addmm.default"), ("gelu", "aten.gelu.default"))
_STEPS += (("view", "aten.view.default"), ("add", "aten.add.Tensor"))


def _graph_node(graph: Graph, layer: int, step: int) -> GraphNode:
    name, target = _STEPS[step]
    before = f"{_STEPS[step - 1][0]}_{layer}" if step else f"add_{layer - 1}"
    frame = {"file": "model/mlp.py", "line": 10 + step, "function": "forward"}
    return GraphNode(
        graph=graph,
        position=4 * layer + step,
        name=f"{name}_{layer}",
        target=target,
        arguments={"args": [before], "kwargs": {}},
        inputs=[before if layer or step else "x"],
        outputs=[f"{name}_{layer}"],
        module_path=f"model.layers.{layer}.mlp" if step < 2 else f"model.layers.{layer}",
        module_type="torch.nn.modules.linear.Linear",
        frames=[{**frame, "code": f"x = self.{name}(x)"}],
    )


def _template_node(graph: Graph, layer: int, candidates: int) -> TemplateNode:
    problem, _ = Problem.objects.get_or_create(
        digest=_digest("problem"),
        defaults={
            "kind": "gemm",
            "op": "linear",
            "summary": "f32 [s0, 64] @ [64, 64] + bias, gelu",
            "symbols": {"s0": {"hint": 64, "min": 2, "max": None}},
            "text": "{}",
        },
    )
    for size in (64, 16):  # 2 * s0 * 64 * 64 operations of products
        ProblemWork.objects.get_or_create(
            problem=problem,
            bindings={"s0": size},
            defaults={
                "read_bytes": 4 * 64 * (64 + size),
                "written_bytes": 4 * 64 * size,
                "matrix_flops": 2 * size * 64 * 64,
                "matrix_dtype": "f32",
                "vector_ops": 10 * size * 64,
            },
        )
    node = TemplateNode.objects.create(
        graph=graph,
        problem=problem,
        position=layer,
        name=f"op{layer}",
        kind="gemm",
        op="linear",
        group=["64*s0", "64"],
        reads=["x", "weight"],
        writes=[f"buf{layer}"],
        offered=candidates,
        rejected=[
            {
                "template": "gemm",
                "config": {"block": 512, "split_k": 4},
                "stage": "rule",
                "reason": "LDS: 98304 B are more than the 65536 B of gfx942",
                "detail": "2 stages of 48 KiB",
            }
        ],
    )
    members = [f"{step}_{layer}" for step in ("linear", "gelu", "add")]
    node.graph_nodes.set(GraphNode.objects.filter(graph=graph, name__in=members))
    for position in range(candidates):
        _use(node, _kernel(position), position)
    return node


def _kernel(position: int) -> GeneratedKernel:
    block = 64 * 2 ** (position % 4)
    unroll = position // 4 + 1
    text = SOURCE.replace("BLOCK", str(block)) + f"// unroll {unroll}\n"
    name = f"rocm_linear_{_digest(text)[:8]}"
    kernel, _ = GeneratedKernel.objects.get_or_create(
        name=name,
        defaults={
            "source_digest": _digest(text),
            "template": "gemm",
            "config": {"block": block, "unroll": unroll},
            "source": text.replace("NAME", name),
            "source_file": "source.hip",
            "args": [
                {"name": "x", "type": "ptr", "is_output": False, "dtype": "f32"},
                {"name": "y", "type": "ptr", "is_output": True, "dtype": "f32"},
                {"name": "n", "type": "i32", "is_output": False, "dtype": ""},
            ],
            "launches": [
                {
                    "function": f"{name}_device",
                    "grid": ["s0", "1", "1"],
                    "block": [block, 1, 1],
                    "lds_bytes": 4 * block,
                    "args": ["x", "y", "n"],
                    "dynamic_lds": False,
                }
            ],
        },
    )
    return kernel


def _use(node: TemplateNode, kernel: GeneratedKernel, position: int) -> None:
    KernelUse.objects.create(
        kernel=kernel,
        template_node=node,
        position=position,
        is_default=position == 0,
        description=f"block {kernel.config['block']}",
        line_origins=[
            {"first": 9, "last": 9, "nodes": [f"linear_{node.position}"]},
            {"first": 10, "last": 10, "nodes": [f"linear_{node.position}"]},
            {"first": 15, "last": 18, "nodes": [f"gelu_{node.position}"]},
        ],
    )


def make_build(
    kernel: GeneratedKernel, target: str, cache: Path, toolchain: Toolchain | None = None
) -> Build:
    """A build that is done, by the bundled compiler unless another is named."""
    code_cache, goal = CodeCache(cache), targets.find(target)
    with_ = toolchain or bundled_clang(code_cache)
    file = kernel.source_file
    made = build(kernel.source, kernel.name, goal, with_, code_cache, source_file=file)
    assert isinstance(made, Built), made
    row, _ = Build.objects.get_or_create(
        kernel=kernel,
        target=target,
        flags=list(made.flags),
        toolchain=made.toolchain.name,
        toolchain_version=made.toolchain.version,
        toolchain_digest=made.toolchain.path_digest,
        defaults={
            "state": State.DONE,
            "code_digest": made.code_digest,
            "duration_s": made.duration_s,
            "log": made.log,
            "resources": dict(made.resources),
            **stored_files(made, recipe_of(goal, file)),
        },
    )
    return row


def _run(
    graph: Graph,
    nodes: list[TemplateNode],
    kernels: list[GeneratedKernel],
    builds: dict[int, Build],
) -> TuningRun:
    run = TuningRun.objects.create(
        graph=graph,
        device="cpu",
        target="cpu",
        bindings={"s0": 16},
        note="s0 is bound to 16 (the model's own example has 64): the emulation is slow",
        state=State.RUNNING,
        planned_at=timezone.now(),
    )
    problem = nodes[0].problem
    assert problem is not None
    task = TuningTask.objects.create(
        run=run,
        problem=problem,
        template_node=nodes[0],
        state=State.RUNNING,
        lease_until=timezone.now() + timedelta(hours=1),
    )
    environment, _ = Environment.objects.get_or_create(
        digest=_digest("environment"),
        defaults={
            "device": "cpu",
            "device_name": "CPU emulation",
            "target": "cpu",
            "compiler": "bundled 22.1.8",
            "compute_units": 2,
            "memory_bytes": 2**34,
            "emulated": True,
        },
    )
    for position, kernel in enumerate(kernels):
        made = builds.get(kernel.pk)
        state = State.DONE if made else State.REJECTED
        result = _result(kernel, made, problem, environment, position) if made else None
        Candidate.objects.create(
            task=task,
            position=position,
            kernel=kernel,
            build=made or Build.objects.order_by("pk").first(),
            result=result,
            config=kernel.config,
            state=state,
            stage="" if made else "check",
            reason="" if made else "wrong: error 3.1e-02 is over the bound 1.2e-05",
            chosen=position == 0,
        )
        if position == 0 and made is not None:
            Selection.objects.get_or_create(
                problem=problem,
                target="cpu",
                device_name="CPU emulation",
                toolchain=f"{made.toolchain} {made.toolchain_version}",
                bindings=run.bindings,
                until=None,
                defaults={
                    "kernel": kernel,
                    "result": result,
                    "reason": "the fastest of run 1",
                    "since": timezone.now(),
                },
            )
    return run


def _result(
    kernel: GeneratedKernel,
    made: Build,
    problem: Problem,
    environment: Environment,
    position: int,
) -> BenchmarkResult:
    median = 120_000.0 + 9_000 * position
    return BenchmarkResult.objects.create(
        kernel=kernel,
        build=made,
        problem=problem,
        environment=environment,
        bindings={"s0": 16},
        samples_ns=[median - 900, median, median + 1_100],
        batch=1,
        median_ns=median,
        low_ns=median - 900,
        high_ns=median + 1_100,
        check_max_error=1e-6,
        check_bound=1e-5,
        check_ratio=0.1,
        emulated=True,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def store_report(
    build: Build,
    board: str,
    sizes: Mapping[str, int],
    report: Report,
) -> Modelling:
    """Store the report of a build that was modelled, in place of an earlier row of the same."""
    row, _ = Modelling.objects.update_or_create(
        build=build,
        board=board,
        sizes=dict(sizes),
        version=VERSION,
        defaults={
            **report_fields(report, build),
            "state": State.DONE,
            "finished_at": timezone.now(),
        },
    )
    return row
