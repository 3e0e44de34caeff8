"""A search on an NVIDIA GPU asks for builds in both languages, each by its own compiler."""

from __future__ import annotations

import pytest

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import builds, engine, recording
from codegen_app.kernels.services.remote_builds import RemoteBuilds, build_result
from codegen_app.tuning.models import Candidate, TuningTask
from codegen_app.tuning.queries.serving import Bucket
from codegen_app.tuning.services import planning, run_requests
from codegen_app.tuning.services import search as tuning_search
from codegen_app.tuning.services.choices import Choices
from codegen_app.workers import compilers, work
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.build.model import AbsentToolchain
from scheduler.build.model import Build as Built
from scheduler.bundle.writer import wrapper_of
from scheduler.errors import Rejected
from scheduler.tuning.budget import Budget
from scheduler.tuning.problems import TuningProblem, find_problems
from tests.app import factories
from tests.support import recorded
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)

TARGET, IN_CUTEDSL = "sm_90", "source.py"


@pytest.fixture
def graph() -> Graph:
    return factories.prepared_graph(sample=recorded.MODEL)


@pytest.fixture
def task(graph: Graph) -> TuningTask:
    """Of a run on an H200, for a node that both languages serve."""
    node = graph.template_nodes.filter(kind="pointwise").order_by("position").first()
    assert node is not None
    sizes = {name: info["hint"] for name, info in graph.symbols.items()}
    budget = Budget(60.0)
    run = run_requests.start_run(
        graph, "cuda:0", TARGET, sizes, None, template_node=node, budget=budget
    )
    assert planning.plan_waiting() == 1
    return run.tasks.select_related("run__graph__file", "template_node", "problem").get()


def problem_of(task: TuningTask) -> TuningProblem:
    digest = task.run.graph.file.digest
    (problem,) = find_problems(
        engine.scheduled(digest).schedule,
        engine.scheduling_for(digest, TARGET),
        targets.find(TARGET),
        dict(task.run.bindings),
        [task.template_node.name],
        engine.scheduled(digest).backend,
    )
    return problem


def first_in_cutedsl(problem: TuningProblem) -> int:
    return [caller.kernel.source_file for caller in problem.callers].index(IN_CUTEDSL)


def attempt(task: TuningTask, problem: TuningProblem) -> tuning_search.CandidateBuilds:
    scheduled = engine.scheduled(task.run.graph.file.digest)
    return tuning_search.CandidateBuilds(task, scheduled, problem, {})


@pytest.mark.full
def test_a_candidate_in_cutedsl_is_recorded_and_built_as_any(task: TuningTask) -> None:
    problem = problem_of(task)
    caller = problem.callers[first_in_cutedsl(problem)]
    row = attempt(task, problem).request_build(caller)
    assert (row.toolchain, row.state) == ("cutedsl", State.QUEUED)
    assert row.kernel.source_file == IN_CUTEDSL
    use = KernelUse.objects.get(kernel=row.kernel)
    assert use.metadata_comment.startswith(f"# kernel path: kernels/{caller.name}/source.py")
    assert work.claim_next(builds.local_builds().filter(pk=row.pk), "w") is not None
    claimed = Build.objects.select_related("kernel").get(pk=row.pk)
    builds.run_build(claimed)
    claimed.refresh_from_db()
    assert claimed.state == State.DONE, (claimed.reason, claimed.log)
    assert claimed.code_object and claimed.intermediate and claimed.listing and claimed.library
    assert set(claimed.resources) == {launch.function for launch in caller.kernel.launches}
    here = build_result(claimed, cached=True)
    assert isinstance(here, Built) and here.source_file == IN_CUTEDSL
    assert (here.directory / "kernel.so").is_file()


@pytest.mark.full
def test_where_its_compiler_is_missing_a_candidate_is_refused_and_kept(
    task: TuningTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "nvidia-cutlass-dsl is not installed: pip install 'kiln[cutedsl]'"
    absent = AbsentToolchain("cutedsl", reason)
    found = tuple(absent if one.name == "cutedsl" else one for one in compilers.toolchains())
    monkeypatch.setattr(compilers, "toolchains", lambda: found)
    problem = problem_of(task)
    caller = problem.callers[first_in_cutedsl(problem)]
    pool = RemoteBuilds(attempt(task, problem).request_build)
    try:
        result = pool.submit(caller).result(timeout=PATIENCE_S)
    finally:
        pool.close()
    assert isinstance(result, Rejected) and reason in result.reason
    row = Candidate.objects.get(task=task, kernel__name=caller.name)
    assert (row.build, row.state, row.stage) == (None, State.REJECTED, "compile")
    assert reason in row.reason


@pytest.mark.full
def test_one_that_was_selected_is_in_the_code_for_its_target_alone(task: TuningTask) -> None:
    problem, graph = problem_of(task), task.run.graph
    caller = problem.callers[first_in_cutedsl(problem)]
    digest, backend = graph.file.digest, engine.scheduling_for(graph.file.digest, TARGET)
    row = task.template_node
    recording.record_candidate(row, 0, engine.scheduled(digest), caller, backend)
    bucket = Bucket("H200", "NVIDIA H200", TARGET, "clang", {}, emulated=False)
    node = task.template_node.name
    chosen = Choices(graph.name, graph.file.digest, bucket, {node: caller.name}, ())
    assert chosen.not_made() == ()
    made = chosen.generated()
    assert caller.name in {kernel.name for kernel in made.kernels}
    assert "libcute_dsl_runtime.so" in wrapper_of(made.manifest())


@pytest.mark.full
def test_a_run_elsewhere_plans_none_of_them(task: TuningTask) -> None:
    problem, graph = problem_of(task), task.run.graph
    caller = problem.callers[first_in_cutedsl(problem)]
    attempt(task, problem).request_build(caller)
    run = run_requests.start_run(
        graph, "rocm:0", "gfx942", dict(task.run.bindings), None, template_node=task.template_node
    )
    assert planning.plan_waiting() == 1
    planned = Candidate.objects.filter(task__run=run, kernel__isnull=False)
    assert {one.kernel.source_file for one in planned if one.kernel} == {"source.hip"}
