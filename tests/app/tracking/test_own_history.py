"""The project's own kernels at its own commits: built, measured and imported, on the emulation."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.tracking.models import Datum
from codegen_app.tuning.models import Selection, TuningRun
from codegen_app.workers.models import State
from scheduler import pipeline
from scheduler.errors import UserError
from scheduler.ir.bindings import hint_bindings
from scheduler.results import file as results_file
from scheduler.targets import find
from scheduler.tuning.problems import find_problems
from tests.benchmarks.gpu.history import folder as history_folder
from tests.benchmarks.gpu.history import prepare as preparing
from tests.benchmarks.gpu.history.folder import Sample
from tests.benchmarks.gpu.history.measure import Amounts, check, measure
from tests.support.caches import empty_cache
from tests.support.exported import softmax, write

COMMITS = ("a" * 40, "b" * 40)
DATE = "2026-11-01T12:00:00+00:00"
RUNS, SAMPLES = 2, 3
CONTROLS = 1
AMOUNTS = Amounts(RUNS, SAMPLES, 600.0, CONTROLS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model") / "tiny.pt2", softmax())


@pytest.fixture(scope="module")
def _prepared(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own-history")
    with pytest.MonkeyPatch.context() as patch:
        _commit_today(patch)
        made = folder / "prepared"
        cache = empty_cache(folder / "cache")
        preparing.prepare(made, [Sample(str(model))], "cpu", "a..b", cache)
    return made


@pytest.fixture
def prepared(_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits with the kernels of today's engine."""
    _commit_today(monkeypatch)
    return shutil.copytree(_prepared, tmp_path / "prepared", symlinks=True)


def _commit_today(patch: pytest.MonkeyPatch) -> None:
    """Today's engine as a commit, whatever git has here; the other's kernels are the same."""
    patch.setattr(preparing, "_git", lambda *_: _archive())
    patch.setattr(preparing, "_log", lambda _: [(one, DATE, "One") for one in COMMITS])


def _archive() -> bytes:
    command = ["tar", "-c", "--exclude=__pycache__", "scheduler", "pyproject.toml"]
    return subprocess.run(command, cwd=preparing.REPOSITORY, check=True, capture_output=True).stdout


@pytest.mark.long
def test_a_commit_that_left_the_kernels_says_so_and_adds_no_library(prepared: Path) -> None:
    history = history_folder.load(prepared)
    assert [one.as_before for one in history.measured] == [False, True]
    assert len(list((prepared / "code").iterdir())) == len([*history.kernels()]) / len(COMMITS)


@pytest.mark.long
def test_of_commits_that_left_the_kernels_some_are_measured(prepared: Path) -> None:
    history = history_folder.load(prepared)
    assert [one.commit for one in history.with_controls(1).measured] == [*COMMITS]
    assert [one.commit for one in history.with_controls(0).measured] == [COMMITS[0]]


@pytest.mark.long
def test_a_commit_that_does_not_know_the_target_renders_for_another(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sources are built for the target all the same, by today's compiler, and that is said."""
    monkeypatch.setattr(preparing, "_git", lambda *_: _archive_before_cpu(tmp_path / "tree"))
    monkeypatch.setattr(preparing, "_log", lambda _: [(COMMITS[0], DATE, "One")])
    made = tmp_path / "prepared"
    cache = empty_cache(tmp_path / "cache")
    history = preparing.prepare(made, [Sample(str(model))], "cpu", "a", cache)
    (commit,) = history.measured
    assert commit.rendered_for == preparing.OLDER
    assert measure(made, tmp_path / "out", "cpu", replace(AMOUNTS, runs=1)) == 0
    (file,) = (tmp_path / "out").iterdir()
    (run,) = results_file.read(file).runs
    assert f"the sources are those for {preparing.OLDER}, built for cpu" in run.note


def _archive_before_cpu(tree: Path) -> bytes:
    tree.mkdir()
    subprocess.run(["tar", "-x", "-C", str(tree)], input=_archive(), check=True)
    with (tree / "scheduler" / "commands" / "options.py").open("a") as options:
        options.write(
            "\n\n_known = targets\n\n\ndef targets(names):\n"
            "    if 'cpu' in names:\n        raise UserError('no such target')\n"
            "    return _known(names)\n"
        )
    command = ["tar", "-c", "scheduler", "pyproject.toml"]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True).stdout


@pytest.mark.long
def test_commits_of_one_moment_keep_their_order(prepared: Path) -> None:
    first, second = (one.date for one in history_folder.load(prepared).commits)
    assert first == DATE < second


@pytest.mark.long
def test_what_is_prepared_is_not_built_again(
    prepared: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_made", lambda *_: pytest.fail("built again"))
    preparing.prepare(prepared, [Sample(str(model))], "cpu", "a..b", tmp_path / "cache")
    with pytest.raises(UserError, match="take another"):
        preparing.prepare(prepared, [Sample(str(model))], "sm_90", "a..b", tmp_path / "cache")


@pytest.mark.long
def test_a_library_that_is_missing_is_named_and_the_rest_measured(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(prepared, CONTROLS) == 0
    *_, (commit, _, name, kernel) = history_folder.load(prepared).kernels()
    shutil.rmtree((prepared / kernel.library).parent)
    capsys.readouterr()
    assert check(prepared, CONTROLS) == 1
    said = capsys.readouterr().out
    assert (
        f"left out: {commit.commit[:9]} {name}: {kernel.library} or its source is missing" in said
    )


@pytest.mark.full
@pytest.mark.django_db
def test_each_commit_becomes_a_revision_of_the_series(
    prepared: Path, model: Path, tmp_path: Path
) -> None:
    kernels = sum(map(len, history_folder.load(prepared).commits[0].bundles.values()))
    out = tmp_path / "out"
    assert measure(prepared, out, "cpu", AMOUNTS) == 0
    (file,) = out.iterdir()
    runs = results_file.read(file).runs
    assert [one.revision.commit for one in runs if one.revision] == [
        commit for commit in COMMITS for _ in range(RUNS)
    ]
    timed = runs[0].tasks[0].candidates[0].timed
    assert timed is not None and len(timed.samples_ns) == SAMPLES
    assert timed.check.passed
    _import_graph(model)
    for _ in range(2):  # again it adds nothing
        call_command("import_results", str(file), "--with-sources")
    points = Datum.objects.select_related("revision").order_by("series", "at", "pk")
    assert len(points) == RUNS * len(COMMITS) * kernels
    assert {one.source for one in points} == {"import"}
    in_order = [one.revision.name for one in points]
    assert in_order == [commit for commit in COMMITS for _ in range(RUNS)] * kernels
    subjects = {one.revision.commit: one.revision.subject for one in runs if one.revision}
    assert {one.revision.name: one.revision.subject for one in points} == subjects
    assert all(subjects.values())
    assert all(one.at == one.revision.at != one.measured_at for one in points)
    assert all(one.kernel and one.build and one.conditions.facts["code_digest"] for one in points)
    assert not TuningRun.objects.exists(), "nothing was tuned"
    assert not Selection.objects.exists(), "and nothing chosen"
    said = StringIO()
    call_command("history_findings", str(file), stdout=said)
    assert (
        f"{len(points)} points of {kernels} series at 2 commits: 0 changes found" in said.getvalue()
    )
    assert "0 times a commit changed a kernel's code" in said.getvalue()


@pytest.mark.long
def test_time_that_is_over_begins_no_further_run(prepared: Path, tmp_path: Path) -> None:
    assert measure(prepared, tmp_path / "out", "cpu", replace(AMOUNTS, seconds=1e-3)) == 1
    assert not [*(tmp_path / "out").iterdir()], "not even the first"


@pytest.mark.long
def test_kernels_of_another_target_are_refused(prepared: Path, tmp_path: Path) -> None:
    index = prepared / history_folder.INDEX
    index.write_text(index.read_text().replace('"cpu"', '"sm_90"'))
    with pytest.raises(UserError, match="cpu is cpu, the kernels are for sm_90"):
        measure(prepared, tmp_path / "out", "cpu", replace(AMOUNTS, runs=1))


def _import_graph(model: Path) -> None:
    made, _ = graphs.import_graph(model, "tiny", [], None)
    Graph.objects.filter(pk=made.pk).update(state=State.DONE)
    plan = pipeline.schedule(pipeline.lower(pipeline.load(model)))
    target = find("cpu")
    sizes = hint_bindings(plan.lowered.graph.symbols)
    for place, of in enumerate(
        find_problems(plan, pipeline.scheduling(plan, (target,)), target, sizes)
    ):
        problem = Problem.objects.create(**asdict(of.identity))
        fields = {"name": of.node.name, "kind": problem.kind, "op": problem.op}
        TemplateNode.objects.create(graph=made, problem=problem, position=place, **fields)
