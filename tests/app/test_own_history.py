"""The project's own kernels at its own commits: built, measured and imported, on the emulation."""

from __future__ import annotations

import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from django.core.management import call_command

from codegen_app.models import Datum, Graph, Problem, State, TemplateNode
from codegen_app.services import graphs
from scheduler import pipeline
from scheduler.ir.bindings import hints
from scheduler.outcome import UserError
from scheduler.results import file as results_file
from scheduler.targets import find
from scheduler.tuning.problems import find_problems
from tests.benchmarks.gpu.history import folder as history_folder
from tests.benchmarks.gpu.history import prepare as preparing
from tests.benchmarks.gpu.history.measure import measure
from tests.support.exported import softmax, write

COMMITS = ("a" * 40, "b" * 40)
RUNS, SAMPLES = 2, 3


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.pt2", softmax())


@pytest.fixture
def prepared(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Today's engine as a commit, whatever git has here; the other's kernels are the same."""
    monkeypatch.setattr(preparing, "_git", lambda *_: _archive())
    monkeypatch.setattr(
        preparing, "_log", lambda _: [(commit, "2026-11-01", "One") for commit in COMMITS]
    )
    made = tmp_path / "prepared"
    preparing.prepare(made, str(model), "cpu", "a..b", tmp_path / "cache")
    return made


def _archive() -> bytes:
    command = ["tar", "-c", "--exclude=__pycache__", "scheduler", "pyproject.toml"]
    return subprocess.run(command, cwd=preparing.REPOSITORY, check=True, capture_output=True).stdout


def test_a_commit_that_left_the_kernels_is_left_out(prepared: Path) -> None:
    history = history_folder.load(prepared)
    assert [one.left_out for one in history.commits] == ["", "kernels as before"]
    assert len(list((prepared / "code").iterdir())) == len(history.commits[0].kernels)


def test_what_is_prepared_is_not_built_again(
    prepared: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_made", lambda *_: pytest.fail("built again"))
    preparing.prepare(prepared, str(model), "cpu", "a..b", tmp_path / "cache")
    with pytest.raises(UserError, match="take another"):
        preparing.prepare(prepared, str(model), "sm_90", "a..b", tmp_path / "cache")


@pytest.mark.django_db
def test_each_commit_becomes_a_revision_of_the_series(
    prepared: Path, model: Path, tmp_path: Path
) -> None:
    kernels = _as_if_both_differed(prepared)
    out = tmp_path / "out"
    assert measure(prepared, out, "cpu", RUNS, SAMPLES) == 0
    files = sorted(out.iterdir())
    assert [results_file.read(file).runs[0].origin.commit for file in files] == [*COMMITS]
    timed = results_file.read(files[0]).runs[0].tasks[0].candidates[0].timed
    assert timed is not None and len(timed.samples_ns) == SAMPLES
    assert timed.check.passed
    _import_graph(model)
    call_command("import_results", *map(str, files), "--with-sources")
    assert {one.revision.name for one in Datum.objects.all()} == {*COMMITS}
    assert Datum.objects.count() == RUNS * len(COMMITS) * len(set(kernels))
    assert len({one.series_id for one in Datum.objects.all()}) == len(set(kernels))


def test_kernels_of_another_target_are_refused(prepared: Path, tmp_path: Path) -> None:
    index = prepared / history_folder.INDEX
    index.write_text(index.read_text().replace('"cpu"', '"sm_90"'))
    with pytest.raises(UserError, match="cpu is cpu, the kernels are for sm_90"):
        measure(prepared, tmp_path / "out", "cpu", 1, 1)


def _as_if_both_differed(prepared: Path) -> list[str]:
    history = history_folder.load(prepared)
    first = history.commits[0]
    history.commits[1] = replace(first, commit=COMMITS[1])
    history.save(prepared)
    (prepared / "commits" / COMMITS[1]).symlink_to(prepared / "commits" / COMMITS[0])
    return [*first.kernels]


def _import_graph(model: Path) -> None:
    made, _ = graphs.import_graph(model, "tiny", [], None)
    Graph.objects.filter(pk=made.pk).update(state=State.DONE)
    plan = pipeline.schedule(pipeline.lower(pipeline.load(model)))
    target = find("cpu")
    sizes = hints(plan.lowered.graph.symbols)
    for place, of in enumerate(
        find_problems(plan, pipeline.scheduling(plan, (target,)), target, sizes)
    ):
        problem = Problem.objects.create(**asdict(of.identity))
        fields = {"name": of.node.name, "kind": problem.kind, "op": problem.op}
        TemplateNode.objects.create(graph=made, problem=problem, position=place, **fields)
