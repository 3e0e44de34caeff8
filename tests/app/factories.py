"""Rows for tests, with what the database asks for filled in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar
from unittest import mock

from django.utils import timezone

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import engine, preparation, recording
from codegen_app.platform.models import Artifact
from codegen_app.tuning.models import BenchmarkResult, Candidate, Environment, TuningRun, TuningTask
from codegen_app.workers import work
from scheduler import samples

_numbers = count()
T = TypeVar("T")


def _once(compute: Callable[..., T]) -> Callable[..., T]:
    """Memoized by schedule and arguments: it takes seconds, and tests of a sample need the same."""
    computed: dict[tuple[Any, ...], tuple[engine.Scheduled, T]] = {}

    def ask(scheduled: engine.Scheduled, *rest: Any) -> T:
        key = (id(scheduled), *(one if isinstance(one, str) else tuple(one) for one in rest))
        if key not in computed:
            # With the schedule, so that nothing else gets its id.
            computed[key] = scheduled, compute(scheduled, *rest)
        return computed[key][1]

    return ask


_prepare, _wrapper = _once(recording.prepare), _once(engine.Scheduled.wrapper)


def digest() -> str:
    """Another sha256 at each call."""
    return hashlib.sha256(str(next(_numbers)).encode()).hexdigest()


def graph(**fields: Any) -> Graph:
    """A queued graph without nodes."""
    name = fields.pop("digest", None) or digest()
    file, _ = Artifact.objects.get_or_create(
        digest=name, defaults={"size_bytes": 1, "path": f"sha256/{name}"}
    )
    defaults = {"name": "model", "digest": name, "file": file, "node_count": 0}
    return Graph.objects.create(**defaults | fields)


def prepared_graph(name: str = "gpt2", sample: str = "gpt2_2layer") -> Graph:
    """A sample with its nodes and kernels; nothing is compiled."""
    made, _ = graphs.import_graph(samples.path(sample), name, [], None)
    held = work.claim_next(Graph.objects.filter(pk=made.pk), "w")
    assert held is not None
    with (
        mock.patch.object(recording, "prepare", _prepare),
        mock.patch.object(engine.Scheduled, "wrapper", _wrapper),
    ):
        preparation.prepare(held)
    made.refresh_from_db()
    return made


def small_node(graph: Graph) -> TemplateNode:
    """The last reduction of the sample, a norm. The first one reads the embeddings: 157 MB, to be
    drawn, handed over and checked."""
    return graph.template_nodes.filter(kind="reduction").latest("position")


def kernel(**fields: Any) -> GeneratedKernel:
    """A kernel whose source says nothing."""
    name = digest()
    defaults = {
        "name": f"rocm_fused_{name[:8]}",
        "source_digest": name,
        "template": "gemm",
        "source": "// nothing\n",
        "source_file": "source.hip",
    }
    return GeneratedKernel.objects.create(**defaults | fields)


def build(**fields: Any) -> Build:
    """A queued build for the emulation."""
    defaults = {
        "kernel": fields.get("kernel") or kernel(),
        "target": "cpu",
        "flags": ["-O3"],
        "toolchain": "bundled",
        "toolchain_version": "22",
        "toolchain_digest": digest(),
    }
    return Build.objects.create(**defaults | fields)


def done_build(**fields: Any) -> Build:
    """A build that is done; its library says nothing."""
    name = digest()
    library = Artifact.objects.create(digest=name, size_bytes=1, path=f"sha256/{name}")
    done = {"state": "done", "library": library, "code_digest": name, "duration_s": 0.1}
    return build(**done | {"finished_at": timezone.now()} | fields)


def task(**fields: Any) -> TuningTask:
    """A queued task of a run of its own."""
    run = fields.pop("run", None) or TuningRun.objects.create(
        graph=graph(), device="cpu", target="cpu", planned_at=timezone.now()
    )
    name = digest()
    problem = Problem.objects.create(digest=name, kind="gemm", op="mm", summary="", text=name)
    node = TemplateNode.objects.create(
        graph=run.graph,
        problem=problem,
        position=run.graph.template_nodes.count(),
        name=f"op{name[:6]}",
        kind="gemm",
        op="mm",
    )
    return TuningTask.objects.create(run=run, problem=problem, template_node=node, **fields)


def candidate(of: TuningTask, **fields: Any) -> Candidate:
    """A queued candidate with a queued build."""
    made = fields.pop("build", None) or build()
    defaults = {"kernel": made.kernel, "build": made, "position": of.candidates.count()}
    return Candidate.objects.create(task=of, **defaults | fields)


def environment(**fields: Any) -> Environment:
    """A GPU."""
    defaults = {
        "digest": digest(),
        "device": "rocm:0",
        "device_name": "AMD Instinct MI300X",
        "target": "gfx942",
        "compiler": "rocm",
        "compute_units": 304,
        "memory_bytes": 2**37,
        "emulated": False,
    }
    return Environment.objects.create(**defaults | fields)


def result(made: Build, median_ns: float, **fields: Any) -> BenchmarkResult:
    """A time of a build that was right, all samples alike; the caller says where and of what."""
    defaults = {
        "kernel": made.kernel,
        "build": made,
        "samples_ns": [median_ns] * 5,
        "batch": 1,
        "median_ns": median_ns,
        "low_ns": median_ns,
        "high_ns": median_ns,
        "check_max_error": 0.0,
        "check_bound": 1.0,
        "check_ratio": 0.0,
        "emulated": False,
    }
    return BenchmarkResult.objects.create(**defaults | fields)
