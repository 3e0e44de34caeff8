"""The processes that model, their limits, and the cache before them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.codegen.benchmark_request import ScalarArg, TensorArg
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import Rejected, Stage
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from scheduler.tuning.modelled.cache import ModelCache, key_of
from scheduler.tuning.modelled.job import ModelJob, job_of
from scheduler.tuning.modelled.workers import ModelWorkers
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problems import find_problems
from tests.unit.matrix.contractions import matmul

GFX942 = find("gfx942")
FAKES = "tests.support.fake_models:"


@pytest.fixture(name="job")
def _job() -> ModelJob:
    schedule = matmul(64, 32, 48, DType.F16)
    (problem,) = find_problems(schedule, ROCmCPPScheduling(schedule, (GFX942,)), GFX942, {})
    return job_of(problem, problem.callers[0], GFX942, "model:MI300X")


@pytest.fixture(name="listing")
def _listing(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.s"
    path.write_text("v_one\nv_two\n")
    return path


@contextmanager
def workers(
    model: str, cache: ModelCache | None = None, limit_s: float = 60.0
) -> Iterator[ModelWorkers]:
    found = ModelWorkers(1, cache, limit_s, FAKES + model)
    try:
        yield found
    finally:
        found.close()


def ask(
    model: str, job: ModelJob, listing: Path, cache: ModelCache | None = None, limit_s: float = 60.0
) -> ModelledTime | Rejected:
    with workers(model, cache, limit_s) as found:
        return found.submit(job, listing, "code").result()


def test_an_answer_is_a_figure_with_its_band(job: ModelJob, listing: Path) -> None:
    found = ask("quick", job, listing)
    assert isinstance(found, ModelledTime)
    assert (found.time_ns.low, found.time_ns.mid, found.time_ns.high) == (1800.0, 2000.0, 2200.0)
    assert (found.device, found.board) == ("model:MI300X", "MI300X")
    assert found.sentence == "bound by lines"


@pytest.mark.full
def test_what_is_known_is_not_modelled_again(job: ModelJob, listing: Path, tmp_path: Path) -> None:
    cache = ModelCache(tmp_path / "cache")
    first = ask("quick", job, listing, cache)
    with workers("broken", cache) as found:
        assert found.submit(job, listing, "code").result() == first
        assert found.from_cache == 1
        other = found.submit(job, listing, "other code").result()
    assert isinstance(other, Rejected)


@pytest.mark.full
def test_what_was_not_answered_is_asked_again(job: ModelJob, listing: Path, tmp_path: Path) -> None:
    cache = ModelCache(tmp_path / "cache")
    for model in ("broken", "refusing", "timeless"):
        assert isinstance(ask(model, job, listing, cache), Rejected)
    assert isinstance(ask("quick", job, listing, cache), ModelledTime)


@pytest.mark.full
@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"time_ns": [3, 2, 1]}', b'{"time_ns": "abc"}']
)
def test_a_damaged_answer_is_modelled_again(
    damage: bytes, job: ModelJob, listing: Path, tmp_path: Path
) -> None:
    cache = ModelCache(tmp_path / "cache")
    first = ask("quick", job, listing, cache)
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_bytes(damage)
    assert ask("quick", job, listing, cache) == first
    assert json.loads(file.read_bytes())["sampled"] == "all"


def test_the_cache_is_bounded_and_the_oldest_goes_first(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path, max_files=3)
    keys = [f"ab{number:060}" for number in range(5)]
    for age, key in enumerate(keys):
        cache.put(key, {"n": key})
        os.utime(tmp_path / "modelled" / "ab" / f"{key}.json", (age, age))
    assert [cache.get(key) is not None for key in keys] == [False, False, True, True, True]
    cache.put("cd" + "0" * 60, {"n": "x" * (1 << 17)})
    assert cache.get("cd" + "0" * 60) is None


def test_the_key_hangs_on_code_call_and_board(job: ModelJob) -> None:
    def changed(kind: type, **facts: object) -> ModelJob:
        args = list(job.request.args)
        place = next(n for n, arg in enumerate(args) if isinstance(arg, kind))
        args[place] = replace(args[place], **facts)
        return replace(job, request=replace(job.request, args=tuple(args)))

    others = [
        changed(TensorArg, stride=(99, 1)),
        replace(job, device="model:MI355X"),
        replace(job, index_limits={"arg0": 3}),
    ]
    if any(isinstance(arg, ScalarArg) for arg in job.request.args):
        others.append(changed(ScalarArg, value=12345))
    keys = {key_of(one, "code") for one in (job, *others)} | {key_of(job, "other")}
    assert len(keys) == len(others) + 2
    named = replace(job, request=replace(job.request, kernel="another", symbol="another"))
    assert key_of(named, "code") == key_of(job, "code")


def test_one_that_takes_too_long_is_ended(job: ModelJob, listing: Path) -> None:
    found = ask("slow", job, listing, limit_s=0.5)
    assert found == Rejected(Stage.MODEL, "modelling exceeds the limit of 0.5 s", "")


def test_close_ends_what_is_under_way(job: ModelJob, listing: Path) -> None:
    with workers("slow") as found:
        under_way, waiting = (found.submit(job, listing, code) for code in ("a", "b"))
        found.close()
        ended = under_way.result()
        assert isinstance(ended, Rejected) and "the run ended" in ended.reason
        assert waiting.cancelled() or isinstance(waiting.result(), Rejected)


@pytest.mark.full
def test_a_fault_of_the_model_is_told_with_its_last_words(job: ModelJob, listing: Path) -> None:
    with workers("broken") as found:
        for code in ("a", "b"):  # another process takes its place
            failed = found.submit(job, listing, code).result()
            assert isinstance(failed, Rejected)
            assert failed.stage is Stage.MODEL
            assert "the model failed" in failed.reason
            assert "unforeseen in 12 letters" in failed.detail


@pytest.mark.full
def test_what_cannot_be_modelled_says_why(job: ModelJob, listing: Path) -> None:
    found = ask("refusing", job, listing)
    assert isinstance(found, Rejected) and "no reason" in found.reason
    no_time = ask("timeless", job, listing)
    assert isinstance(no_time, Rejected) and "no modelled time" in no_time.reason


def test_jobs_travel_as_json(job: ModelJob) -> None:
    again = ModelJob.from_json(json.loads(json.dumps(job.to_json())))
    assert again.launches == job.launches
    assert again.workspace_bytes == job.workspace_bytes
    assert again.request.args == job.request.args
