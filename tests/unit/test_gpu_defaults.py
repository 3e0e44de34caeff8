"""Defaults beside other candidates on an NVIDIA GPU: what of the command needs no GPU."""

from __future__ import annotations

import json
import lzma
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.codegen.languages import language_of
from scheduler.runtime import cuda
from scheduler.runtime.device import AbsentDevice
from scheduler.targets import find
from tests.benchmarks.cycles.candidates import longest, others
from tests.benchmarks.cycles.defaults import WITHIN
from tests.benchmarks.cycles.shapes import FILE, Shape, read
from tests.benchmarks.gpu.apart import Apart, LostError
from tests.benchmarks.gpu.defaults import __main__ as command
from tests.benchmarks.gpu.defaults.results import Row, Tried, row_of, table
from tests.benchmarks.gpu.files import before
from tests.benchmarks.gpu.results import Outcome, spread

MEASURED = Path(__file__).parents[2] / "docs" / "gpu" / "h100-2026-11-25-defaults.json.xz"
SMALL = Shape("gemm", "a model", {"m": 16, "n": 64, "k": 256})


def timed(median: float) -> Outcome:
    return Outcome(2e-4, "", spread([median * 0.99, median, median * 1.01]), 1.0)


def a_row(hip: float = 30.0, cutedsl: float = 21.0, best: float = 20.0) -> Row:
    tried = (
        Tried("HIP", "BLOCK_M=64", True, timed(hip)),
        Tried("HIP", "BLOCK_M=32", False, Outcome(wrong="it spills")),
        Tried("CuteDSL", "BLOCK_M=128", True, timed(cutedsl)),
        Tried("CuteDSL", "BLOCK_M=256", False, timed(best)),
    )
    readings = {"sm_clock_mhz": {"min": 1755.0, "max": 1980.0}}
    return Row("gemm 16x64x256", "a model", 1e-3, tried, readings)


def test_the_faster_default_and_the_one_without_measurement_are_held_against_the_best() -> None:
    row = a_row()
    assert (row.default_us(), row.default_us("HIP")) == (21.0, 30.0)
    assert (row.ratio(), row.ratio("HIP")) == (pytest.approx(1.05), pytest.approx(1.5))
    assert row.best is not None
    assert row.best.title == "BLOCK_M=256"
    assert not row.failed
    in_hip = replace(row, language="HIP")
    assert (in_hip.default_us(), in_hip.ratio()) == (30.0, pytest.approx(1.5))


def test_a_wrong_candidate_and_a_missing_default_fail_one_that_is_not_built_does_not() -> None:
    row = a_row()
    wrong = Tried("HIP", "BLOCK_M=16", False, Outcome(0.5, "error 5.00e-01"))
    assert replace(row, tried=(*row.tried, wrong)).failed
    assert Row("a", "b", error="the process ended with -11").failed
    alone = replace(row, tried=row.tried[:2])
    assert (alone.failed, alone.ratio()) == (False, 1.0)


def test_the_table_says_both_shares_and_what_was_not_timed() -> None:
    lost = Row("softmax 8x8", "another", error="not done within 60 s")
    text = table([a_row(), lost])
    cells = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    shown = ["30.0", "21.0", "20.0", "1.05", "1.50", "3", "CuteDSL BLOCK_M=256"]
    assert cells == ["gemm 16x64x256, a model", *shown]
    assert "none" in text.splitlines()[3]
    assert "- the default in any language is within a tenth of the best: 1 of 2" in text
    assert "- in HIP alone: 0 of 2" in text
    assert "- gemm 16x64x256, a model, HIP BLOCK_M=32: it spills" in text
    assert "- softmax 8x8, another: not done within 60 s" in text


@pytest.mark.full
def test_defaults_of_today_are_within_a_tenth_of_the_best_that_was_measured() -> None:
    """On an H100, of 60 shapes of real models; of those that were not measured as they are now
    there are few, and the next measurement has them."""
    known: dict[tuple[str, str], list[Row]] = {}
    with lzma.open(MEASURED, "rt") as file:
        for run in json.load(file)["runs"]:
            for row in map(row_of, run["rows"]):
                known.setdefault(row.key, []).append(row)
    shapes = read(FILE)
    slow, unknown = [], []
    for shape in shapes:
        plan, runs = shape.plan(), known[shape.name, shape.of]
        default = pipeline.scheduling(plan, (find("sm_90"),), any_language=True).default(
            longest(plan)
        )
        chosen = language_of(default.kernel.source_file), default.description
        times = [
            one.time_us for row in runs for one in row.tried if (one.language, one.title) == chosen
        ]
        best = min(row.best.time_us for row in runs if row.best)
        if not times:
            unknown.append(shape.title)
        elif min(times) > WITHIN * best:
            slow.append((shape.title, *chosen))
    assert len(shapes) == 60
    assert slow == []
    assert len(unknown) <= 6, unknown


def test_rows_are_read_again_and_measured_ones_left_out(tmp_path: Path) -> None:
    row, lost = a_row(), Row("softmax 8x8", "another", error="hung")
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({"rows": [asdict(row), asdict(lost)]}))
    again = row_of(json.loads(file.read_text())["rows"][0])
    assert json.dumps(asdict(again)) == json.dumps(asdict(row))
    assert [one.key for one in before(Namespace(resume=True, json=file), row_of)] == [row.key]
    assert before(Namespace(resume=False, json=file), row_of) == []


@pytest.mark.full
def test_without_a_gpu_nothing_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    absent = (AbsentDevice("cuda", "no driver here"),)
    monkeypatch.setattr(type(cuda.DEVICES), "probe", lambda _: absent)
    assert command.main([]) == command.NO_GPU
    assert capsys.readouterr().out == "nothing is measured: no NVIDIA GPU: no driver here\n"


def test_the_contenders_are_the_defaults_of_both_languages_and_others(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.benchmarks.gpu.defaults.contenders import contenders
    from tests.benchmarks.gpu.making import Shop

    plan, shop = SMALL.plan(), Shop("sm_90", CodeCache(tmp_path))
    found = contenders(plan, shop, 8)
    languages = {one.language for one in found}
    assert "HIP" in languages
    assert sum(one.default for one in found) == len(languages)
    assert len(found) - len(languages) == 8 // len(languages) * len(languages)
    chosen = [one.choose(longest(plan)) for one in found]
    assert len({str(caller) for caller in chosen}) == len(found)


def test_other_candidates_are_the_likeliest_and_some_of_all() -> None:
    """None of them is the default, and each is there once."""
    plan, target = SMALL.plan(), find("gfx942")
    template = pipeline.scheduling(plan, (target,)).template(longest(plan))
    default = template.generate(template.default_config())
    names = [caller.name for caller in others(template, target, 9)]
    assert len(set(names)) == 9
    assert default.name not in names
    assert names[:6] == [caller.name for caller in others(template, target, 12)][:6]


def test_a_problem_is_drawn_as_it_lies_and_computed_in_float64() -> None:
    torch = pytest.importorskip("torch")
    from tests.benchmarks.gpu.defaults.problem import bound_of, drawn, exact
    from tests.benchmarks.gpu.reference import error_of

    sizes = {"images": 2, "channels": 8, "side": 5, "filters": 4, "kernel": 3}
    plan = Shape("convolution", "a model", sizes).plan()
    x, w = drawn(plan, "cpu").inputs
    assert x.stride() == (5 * 5 * 8, 1, 5 * 8, 8)
    expected = exact(plan, (x, w))
    assert expected.dtype == torch.float64
    same = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    assert torch.equal(expected, same)
    bound = bound_of(expected, x.dtype)
    assert error_of(same.half(), expected) < bound < 4e-3


def test_a_rounded_result_is_right_where_it_is_subnormal() -> None:
    """As a softmax over a vocabulary is."""
    torch = pytest.importorskip("torch")
    from tests.benchmarks.gpu.defaults.problem import bound_of, exact
    from tests.benchmarks.gpu.reference import error_of

    plan = Shape("softmax", "a model", {"rows": 1, "columns": 128256}).plan()
    torch.manual_seed(0)
    expected = exact(plan, (torch.randn(1, 128256, dtype=torch.float16),))
    bound = bound_of(expected, torch.float16)
    assert torch.finfo(torch.float16).eps < error_of(expected.half(), expected) < bound < 1e-2


@pytest.mark.full
def test_a_process_that_ends_or_hangs_costs_one_answer() -> None:
    apart: Apart[str, str] = Apart(partial(answering, "said: "))
    try:
        assert apart.answer("a", 60) == "said: a"
        with pytest.raises(LostError, match="ValueError: not this"):
            apart.answer("raise", 60)
        with pytest.raises(LostError, match="the process ended with 7"):
            apart.answer("end", 60)
        with pytest.raises(LostError, match="not done within 0 s"):
            apart.answer("hang", 0.01)
        assert apart.answer("b", 60) == "said: b"
    finally:
        apart.stop()


def answering(said: str) -> Callable[[str], str]:
    """In the process."""

    def answer(question: str) -> str:
        if question == "raise":
            raise ValueError("not this")
        if question == "end":
            raise SystemExit(7)
        if question == "hang":
            time.sleep(60)
        return said + question

    return answer
