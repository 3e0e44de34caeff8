"""Two files of recorded results, compared by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler import samples
from scheduler.benchmark.metrics import TIME, MetricInputs
from scheduler.commands.main import main
from scheduler.results import file as results_file
from scheduler.results.model import CandidateRecord, Results, TaskRecord
from scheduler.track.result_series import series_from_results

RECORDED = Path(samples.__file__).parent / "results" / "gpt2_124m-h200.json.xz"


@pytest.fixture(scope="module")
def recorded() -> Results:
    return results_file.read(RECORDED)


def changed(
    results: Results, change: Callable[[CandidateRecord], CandidateRecord], driver: str = ""
) -> Results:
    """With the chosen candidate of the first task changed, at another commit."""
    (run,) = results.runs
    first = run.tasks[0]
    task = replace(
        first, candidates=tuple(change(one) if one.chosen else one for one in first.candidates)
    )
    devices = tuple(replace(one, driver=driver or one.driver) for one in run.devices)
    tasks: tuple[TaskRecord, ...] = (task, *run.tasks[1:])
    origin = replace(run.origin, commit="f" * 40)
    runs = (replace(run, tasks=tasks, devices=devices, origin=origin),)
    return replace(results, runs=runs, listings={})


def slower(one: CandidateRecord, factor: float = 1.3) -> CandidateRecord:
    """Other code that takes longer."""
    assert one.timed
    assert one.build
    taken = tuple(ns * factor for ns in one.timed.samples_ns)
    timed = replace(one.timed, samples_ns=taken, metrics={TIME: MetricInputs(taken).time})
    return replace(one, timed=timed, build=replace(one.build, code_digest="e" * 64))


@pytest.fixture
def files(recorded: Results, tmp_path: Path) -> Callable[[Results], list[str]]:
    def write(other: Results) -> list[str]:
        paths = tmp_path / "a.json", tmp_path / "b.json"
        for path, results in zip(paths, (recorded, other), strict=True):
            results_file.write(path, results)
        return ["compare-results", *map(str, paths)]

    return write


def test_what_is_known_of_a_chosen_kernel(recorded: Results) -> None:
    found = series_from_results(recorded)
    chosen = [one for task in recorded.runs[0].tasks for one in task.candidates if one.chosen]
    assert len(found) == len(chosen) > 1
    point = found[0].point
    assert point is not None
    assert point.environment.device == "NVIDIA H200"
    assert point.environment.driver == "NVIDIA 580.159.04"
    assert point.readings["sm_clock_mhz"] == 1980.0
    assert point.compiler.name == "bundled+ptxas"
    assert point.others[point.configuration].source_digest == point.source_digest
    assert found[0].group == "gpt2_124m"


@pytest.mark.full
def test_the_same_results_are_the_same(
    recorded: Results, files: Callable[[Results], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files(recorded), "--fail-on", "regression"]) == 0
    n = len(recorded.runs[0].tasks)
    assert f"{n} same; {n} series compared" in capsys.readouterr().err


@pytest.mark.full
def test_a_regression_fails_where_it_shall(
    recorded: Results,
    files: Callable[[Results], list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = files(changed(recorded, slower))
    text = tmp_path / "comparison.md"
    assert main([*command, "--markdown", str(text)]) == 0
    assert main([*command, "--fail-on", "gone"]) == 0
    assert main([*command, "--fail-on", "regression"]) == 1
    n, commit = len(recorded.runs[0].tasks), recorded.runs[0].origin.commit[:12]
    assert f"1 slower, {n - 1} same" in capsys.readouterr().err
    title = f"### 1 slower, {n - 1} same\n\n`{commit}` → `ffffffffffff`"
    assert text.read_text().startswith(title)
    assert main([*command, "--json", "--fail-on", "regression"]) == 1
    first = json.loads(capsys.readouterr().out)["rows"][0]
    assert (first["status"], round(first["ratio"], 3)) == ("slower", 1.3)
    assert first["why"].startswith("unknown (code or compiler)")


@pytest.mark.full
def test_a_faster_one_is_no_regression(
    recorded: Results, files: Callable[[Results], list[str]]
) -> None:
    command = files(changed(recorded, lambda one: slower(one, 0.8)))
    assert main([*command, "--fail-on", "regression"]) == 0


@pytest.mark.full
def test_another_driver_cannot_be_compared(
    recorded: Results, files: Callable[[Results], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    command = files(changed(recorded, slower, driver="NVIDIA 590.1"))
    assert main([*command, "--fail-on", "regression"]) == 0
    assert "0 series compared" in capsys.readouterr().err
    assert main([*command, "--fail-on", "unknown"]) == 1
    assert "driver NVIDIA 580.159.04 → NVIDIA 590.1" in capsys.readouterr().out


def test_a_mistake_is_one_line(
    recorded: Results, files: Callable[[Results], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files(recorded), "--least-effect", "2"]) == 2
    assert capsys.readouterr().err.startswith("--least-effect: must be at least 0 and less than 1")
    assert main(["compare-results", "nothing.json", "nothing.json"]) == 2
    assert "nothing.json cannot be read" in capsys.readouterr().err
