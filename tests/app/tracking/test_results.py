"""Recorded results: from file to rows and back, once, whole, and never beside what is our own."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.models.build import ELSEWHERE
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.kernels.queries.resource_use import resource_use
from codegen_app.platform import artifacts
from codegen_app.site import retention
from codegen_app.site.demo import models
from codegen_app.tracking.services import result_export, result_import
from codegen_app.tuning.models import (
    BenchmarkResult,
    Candidate,
    Environment,
    ResultImport,
    Selection,
    TuningRun,
    TuningTask,
)
from codegen_app.tuning.pages.selections.query import selections
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.ranking import kernel_ranking
from codegen_app.workers.models import State
from codegen_app.workers.pages.devices.query import devices
from scheduler import pipeline, samples
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.problem import problem_of
from scheduler.errors import UserError
from scheduler.results import file as results_file
from scheduler.results.model import Results, RevisionRecord
from tests.app import factories
from tests.support import recorded
from tests.support.queries import most

pytestmark = pytest.mark.django_db

RECORDED = (TuningRun, TuningTask, Candidate, BenchmarkResult, Environment, Selection, ResultImport)


@pytest.fixture
def graph() -> Graph:
    """The model, with the one scheduled node that the recorded run is about."""
    made, _ = graphs.import_graph(samples.path(recorded.MODEL), recorded.MODEL, [], None)
    Graph.objects.filter(pk=made.pk).update(state=State.DONE)
    made.refresh_from_db()
    of = recorded.problem()
    problem = Problem.objects.create(**asdict(of.identity))
    fields = {"name": of.node.name, "kind": problem.kind, "op": problem.op}
    TemplateNode.objects.create(graph=made, problem=problem, position=0, **fields)
    return made


def stored() -> dict[str, int]:
    return {model.__name__: model.objects.count() for model in (*RECORDED, Build, GeneratedKernel)}


def content(results: Results) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(results_file.to_json(results)))
    return made


def test_what_is_imported_is_exported_the_same(graph: Graph, tmp_path: Path) -> None:
    original, again = tmp_path / "results.json.gz", tmp_path / "again.json.gz"
    results_file.write(original, recorded.recorded())
    call_command("import_results", str(original), "--why", "a look")
    run = TuningRun.objects.get()
    call_command("export_results", str(again), "--run", str(run.pk))
    assert again.read_bytes() == original.read_bytes()
    assert AuditEntry.objects.get(action="import results").why == "a look"


def test_the_same_file_twice_is_one_set(graph: Graph) -> None:
    first = result_import.record(recorded.recorded(), "a", None)
    before = stored()
    second = result_import.record(recorded.recorded(), "b", None)
    assert (len(first.new), first.known, second.new, second.known) == (1, 0, (), 1)
    assert stored() == before


def test_pages_say_where_it_comes_from(graph: Graph, reader: Client) -> None:
    result_import.record(recorded.recorded(), "a", None)
    run, result = TuningRun.objects.get(), BenchmarkResult.objects.get()
    origin = "NVIDIA H200, driver 580.95.05, 2026-11-20, Kiln cccccccccccc"
    text = reader.get(run.get_absolute_url()).content.decode()
    assert f"<dt>Recorded on</dt><dd>{origin}</dd>" in text
    for address in (
        *("/", "/runs", "/devices", "/selections"),
        graph.get_absolute_url(),
        graph.template_nodes.get().get_absolute_url(),
        result.kernel.get_absolute_url(),
        f"/compare?build={result.build_id}&build={result.build_id}",
    ):
        text = reader.get(address).content.decode()
        assert f">recorded: {origin}</span>" in text, address
    text = reader.get(graph.get_absolute_url()).content.decode()
    assert "NVIDIA H200 (imported)" in text


def test_the_origin_of_times_costs_no_query_a_row(
    graph: Graph, django_assert_max_num_queries: Any
) -> None:
    result_import.record(recorded.recorded(), "a", None)
    kernel = BenchmarkResult.objects.get().kernel
    for read, arguments in (
        (devices, ()),
        (selections, ()),
        (kernel_page, (kernel.name, None, None)),
    ):
        said = re.search(r"\((\d+) quer", read.__doc__ or "")
        assert said
        with django_assert_max_num_queries(most(int(said[1]))):
            read(*arguments)


def test_a_kernels_page_shows_what_was_imported_of_it(graph: Graph, reader: Client) -> None:
    result_import.record(recorded.recorded(recorded.AMD), "a", None)
    kernel = BenchmarkResult.objects.get().kernel
    text = reader.get(kernel.get_absolute_url()).content.decode()
    assert "AMD Instinct MI300X (imported)" in text
    assert "built on another machine</span>" in text
    recorded_build = BenchmarkResult.objects.get().build
    text = reader.get(f"{kernel.get_absolute_url()}?build={recorded_build.pk}").content.decode()
    assert "figures and instructions were imported" in text


def test_selected_kernels_are_built_here_for_their_instructions(graph: Graph) -> None:
    without_listings = replace(recorded.recorded(recorded.AMD), listings={})
    result_import.record(without_listings, "a", None)
    result = BenchmarkResult.objects.get()
    assert Selection.objects.filter(kernel=result.kernel, until=None).exists()
    requested = result.kernel.builds.exclude(pk=result.build_id).get()
    assert (requested.target, requested.state) == ("gfx942", State.QUEUED)
    assert result.build.reason == ELSEWHERE


def test_kernels_whose_instructions_are_in_the_file_are_not_built(graph: Graph) -> None:
    result_import.record(recorded.recorded(recorded.AMD), "a", None)
    result = BenchmarkResult.objects.get()
    assert list(result.kernel.builds.filter(target="gfx942")) == [result.build]
    assert result.build.state == State.CANCELLED


def test_rankings_have_the_registers_of_imported_builds(graph: Graph) -> None:
    result_import.record(recorded.recorded(), "a", None)
    build = BenchmarkResult.objects.get().build
    ranking = kernel_ranking(graph)
    row = ranking.find(build.kernel.name)
    assert row is not None
    assert (ranking.built_for, row.build) == ("sm_90", build.pk)
    assert row.resource_use == resource_use(build.resources, "sm_90")
    assert "target=sm_90" in row.page_url


def test_a_kernels_page_shows_the_instructions_of_the_file(graph: Graph, reader: Client) -> None:
    result_import.record(recorded.recorded(), "a", None)
    build = BenchmarkResult.objects.get().build
    page = kernel_page(build.kernel.name, None, None)
    assert page.build is not None
    assert page.build.id == build.pk, "it opens on the listing of the file"
    assert build.listing is not None
    assert artifacts.read(build.listing).decode() == recorded.LISTING
    text = reader.get(f"{build.kernel.get_absolute_url()}?build={build.pk}").content.decode()
    assert "MOV" in text
    assert "figures and instructions were imported" in text
    assert "its instructions were not" not in text
    assert "EXIT" in text


def test_imported_times_are_a_bucket_of_their_own(graph: Graph) -> None:
    result_import.record(recorded.recorded(), "a", None)
    result = BenchmarkResult.objects.get()
    KernelUse.objects.filter(kernel=result.kernel).update(is_default=True)
    own = factories.environment(device_name="NVIDIA H200", target="sm_90", device="cuda:0")
    factories.result(
        result.build, 1000.0, problem=result.problem, environment=own, bindings=result.bindings
    )
    nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
    known = serving.node_buckets(nodes)
    assert [one.imported for one in known.buckets] == [False, True], "our own come first"
    times = {
        bucket.device_name: {
            served.measured.result.median_ns
            for served in serving.served_kernels(known, bucket).values()
            if served.measured is not None
        }
        for bucket in known.buckets
    }
    assert times == {"NVIDIA H200": {1000.0}, "NVIDIA H200 (imported)": {1450.25}}


def test_what_was_compiled_elsewhere_is_compiled_here_once_somebody_asks(graph: Graph) -> None:
    result_import.record(recorded.recorded(), "a", None)
    build = BenchmarkResult.objects.get().build
    assert (build.state, build.library) == (State.CANCELLED, None)
    assert build.reason == "compiled elsewhere: imported with its times"
    assert build.resources == recorded.resources(recorded.TARGET)


def test_a_kernel_that_is_not_made_any_more_is_shown_for_who_trusts_its_text(graph: Graph) -> None:
    old = _older_kernels(recorded.recorded())
    before = stored()
    with pytest.raises(UserError, match=r"candidates\[0\].kernel: this version does not generate"):
        result_import.record(old, "old.json", None)
    assert stored() == before
    result_import.record(old, "old.json", None, with_sources=True)
    kernel = BenchmarkResult.objects.get().kernel
    assert "#define OLDER" in kernel.source
    assert KernelUse.objects.get(kernel=kernel).generator == "", "not known to be made here"
    assert content(result_export.export(TuningRun.objects.all())) == content(old)


def test_a_text_under_the_name_of_another_is_not_recorded(graph: Graph) -> None:
    body = json.loads(json.dumps(results_file.to_json(_older_kernels(recorded.recorded()))))
    for kernel in body["kernels"].values():
        kernel["source"] += "// forged\n"
        kernel["source_digest"] = sha256(kernel["source"])
    forged = results_file.from_json(_signed(body), "forged")
    with pytest.raises(UserError, match="does not match its name"):
        result_import.record(forged, "forged", None, with_sources=True)
    assert not GeneratedKernel.objects.filter(source__endswith="// forged\n").exists()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _signed(body: dict[str, Any]) -> dict[str, Any]:
    rest = {name: part for name, part in body.items() if name != "digest"}
    return {**rest, "digest": results_file.digest_of(rest)}


def _older_kernels(results: Results) -> Results:
    """As an earlier generator may have made them: other code, and so other names."""
    text = json.dumps(results_file.to_json(results))
    for name, kernel in results.kernels.items():
        lines = kernel.source.splitlines(keepends=True)
        code = "".join(line for line in lines if not line.startswith("//"))
        older = f"#define OLDER\n{code}".replace(name, PLACEHOLDER)
        text = text.replace(name, f"{name[:-8]}{sha256(older)[:8]}")
    body = json.loads(text)
    for kernel in body["kernels"].values():
        above, code = kernel["source"].split("#include", 1)
        kernel["source"] = f"{above}#define OLDER\n#include{code}"
        kernel["source_digest"] = sha256(kernel["source"])
    return results_file.from_json(_signed(body), "older")


def test_the_model_must_be_here_and_prepared() -> None:
    with pytest.raises(UserError, match=r"runs\[0\].graph: .* is not imported: import its model"):
        result_import.record(recorded.recorded(), "a", None)
    graph = factories.graph(digest=recorded.recorded().runs[0].graph.digest)
    with pytest.raises(UserError, match="not prepared yet"):
        result_import.record(recorded.recorded(), "a", None)
    assert graph.tuning_runs.count() == 0


def test_a_mistake_in_the_last_row_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    (run,) = recorded.recorded().runs
    stranger = replace(run.tasks[0], problem=sha256("x"), text="x")
    results = replace(
        recorded.recorded(), runs=(run, replace(run, note="two", tasks=(run.tasks[0], stranger)))
    )
    before = stored()
    path = tmp_path / "results.json"
    results_file.write(path, results)
    with pytest.raises(
        CommandError, match=r"results.json: runs\[1\].tasks\[1\].problem: no kernel"
    ):
        call_command("import_results", str(path))
    assert stored() == before


def test_a_run_of_the_future_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    """Its moments are places in histories. Five minutes are allowed for clocks that differ."""
    (run,) = recorded.recorded().runs
    later = (timezone.now() + timedelta(days=1)).isoformat()
    path, before = tmp_path / "results.json", stored()
    for name, late in (
        ("finished_at", replace(run, finished_at=later)),
        ("origin.date", replace(run, origin=replace(run.origin, date=later))),
        ("revision.date", replace(run, revision=RevisionRecord("a" * 40, later, ""))),
    ):
        results_file.write(path, replace(recorded.recorded(), runs=(run, late)))
        line = rf"results.json: runs\[1\].{name}: {later[:10]} .* is in the future"
        with pytest.raises(CommandError, match=line):
            call_command("import_results", str(path))
    assert stored() == before


def test_what_was_imported_is_kept_as_long_as_what_was_measured(
    graph: Graph, settings: Any
) -> None:
    result_import.record(recorded.recorded(), "a", None)
    settings.KEEP_RUNS_DAYS = 1
    assert retention.sweep()["runs"] == 0


def test_own_runs_are_exported_and_open_ones_are_not(graph: Graph, tmp_path: Path) -> None:
    run = TuningRun.objects.create(graph=graph, device="cpu", target="cpu")
    with pytest.raises(CommandError, match=f"run {run.pk} has not finished"):
        call_command("export_results", str(tmp_path / "r.json"), "--run", str(run.pk))
    with pytest.raises(CommandError, match="no finished run"):
        call_command("export_results", str(tmp_path / "r.json"))
    assert not (tmp_path / "r.json").exists()


def test_the_demo_imports_what_was_recorded_once_the_model_is_prepared(
    graph: Graph, tmp_path: Path
) -> None:
    good, broken = tmp_path / "a.json.gz", tmp_path / "b.json"
    results_file.write(good, recorded.recorded())
    broken.write_text("{}")
    Graph.objects.filter(pk=graph.pk).update(state=State.QUEUED)
    shown = models.RecordedResults((good, broken))
    assert list(shown.import_next()) == [
        "recorded results are left out: b.json: kind: not a results file"
    ]
    assert shown.waiting
    Graph.objects.filter(pk=graph.pk).update(state=State.DONE)
    (line,) = shown.import_next()
    assert line.startswith(
        f"{recorded.MODEL}: recorded results imported. NVIDIA H200, driver 580.95.05"
    )
    assert not shown.waiting
    assert list(models.RecordedResults((good,)).import_next()) == [], "another start"
    assert TuningRun.objects.count() == 1


@cache
def of_model(name: str) -> tuple[str, set[str]]:
    """The sample's digest, and those of what this Kiln makes kernels for."""
    graph = pipeline.load(samples.path(name))
    made = pipeline.schedule(pipeline.lower(graph))
    own = {problem_of(node, made.lowered).digest for node in made.nodes if node.kind.has_kernel}
    return graph.digest, own


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("path", samples.results(), ids=lambda path: path.name)
def test_recorded_results_in_the_package_can_be_imported(path: Path) -> None:
    """Also where lowering changed since: a problem that is not there any more would leave the whole
    file out, before the eyes of whoever starts the demo."""
    for run in results_file.read(path).runs:
        digest, problems = of_model(run.graph.name)
        assert run.graph.digest == digest
        assert run.origin.commit
        assert not any(device.emulated for device in run.devices)
        assert {task.problem for task in run.tasks} <= problems
