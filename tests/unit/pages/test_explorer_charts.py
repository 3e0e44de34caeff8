"""The explorer's figures: parameters that only some trials name, measured beside modelled times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen_app.tuning.pages.explorer import charts
from codegen_app.tuning.pages.explorer.builder import (
    ExplorerSource,
    GridQuery,
    build_explorer,
    parameters_of,
)
from codegen_app.tuning.pages.explorer.form import MODELLED, TRIED, ExplorerForm
from codegen_app.tuning.pages.explorer.model import Explorer, Trial


def trial(place: int, time_us: float | None = 2.0, **fields: object) -> Trial:
    state = "measured" if time_us is not None else "crash"
    plain = Trial(place, f"k{place}", f"/kernels/k{place}", state, order=place + 1)
    low, high = (None, None) if time_us is None else (0.95 * time_us, 1.05 * time_us)
    return replace(plain, time_us=time_us, low_us=low, high_us=high, n=30, **fields)  # type: ignore[arg-type]


def made(trials: list[Trial], configs: list[dict[str, int]], times: str = "measured") -> Explorer:
    source = ExplorerSource(
        *(trials, configs, "op0", "mm", times, "MI300X (gfx942)", {"s0": 64}, "the order"),
        key=lambda name: name,
        modelled_where="MI300X at s0=64",
    )
    return build_explorer(source, parameters_of(source), GridQuery())


CONFIGS = [
    {"BLOCK_M": 64, "STAGES": 1},
    {"BLOCK_M": 128, "STAGES": 1, "MATRIX_INSTR_NONKDIM": 32},
]
BOTH = made([trial(0), trial(1, 4.0)], CONFIGS)


def test_not_to_name_a_parameter_is_a_value_of_it() -> None:
    assert [one.name for one in BOTH.parameters] == ["BLOCK_M", "MATRIX_INSTR_NONKDIM"]
    figure = charts.trials(BOTH, "MATRIX_INSTR_NONKDIM", "")
    assert figure is not None
    assert figure["layout"]["xaxis"]["ticktext"] == ["32", "not named"]
    assert [round(x) for x in figure["data"][0]["x"]] == [1, 0]
    coloured = charts.trials(BOTH, "BLOCK_M", "MATRIX_INSTR_NONKDIM")
    assert coloured is not None
    names = [trace["name"] for trace in coloured["data"]]
    assert names == ["MATRIX_INSTR_NONKDIM=32 (1)", "MATRIX_INSTR_NONKDIM=not named (1)"]


def test_axes_begin_at_the_data() -> None:
    figure = charts.trials(BOTH, TRIED, "")
    assert figure is not None
    low, high = figure["layout"]["yaxis"]["range"]
    assert 1.5 < low < 2.0 and 4.0 < high < 4.5
    low, high = figure["layout"]["xaxis"]["range"]
    assert 0.9 < low < 1.0 and 2.0 < high < 2.1
    far = charts.trials(made([trial(0, 1.0), trial(1, 1000.0)], CONFIGS), TRIED, "")
    assert far is not None
    assert far["layout"]["yaxis"]["type"] == "log"
    assert far["layout"]["yaxis"]["range"][0] == pytest.approx(-0.18)


def test_a_modelled_time_is_an_axis_that_says_so_beside_the_measured_one() -> None:
    found = made([trial(0, modelled_us=1.5), trial(1)], CONFIGS)
    figure = charts.trials(found, MODELLED, "")
    assert figure is not None
    points = figure["data"][0]
    assert (points["x"], points["y"]) == ([1.5], [2.0]), "who was not modelled has no point"
    title = figure["layout"]["xaxis"]["title"]["text"]
    assert title == "modelled time, µs: not measured, by a model of MI300X at s0=64"
    assert figure["layout"]["yaxis"]["title"]["text"] == "median, µs at s0=64"
    modelled = charts.trials(made([trial(0)], CONFIGS[:1], "modelled"), TRIED, "")
    assert modelled is not None
    assert modelled["layout"]["yaxis"]["title"]["text"] == "modelled time, µs at s0=64"


def test_what_failed_is_counted_by_value_and_stands_by_itself_in_order() -> None:
    failed = {"stage": "crash", "reason": "<b>ended</b>"}
    trials = [trial(0), trial(1, None, **failed), trial(2, None, **failed)]
    found = made(trials, [{"BLOCK_M": 64}, {"BLOCK_M": 128}, {"BLOCK_M": 128}])
    (ordered,) = _failed(charts.trials(found, TRIED, ""))
    assert (ordered["x"], ordered["customdata"]) == ([2.0, 3.0], [1, 2])
    assert ordered["hovertext"][0] == "k1: crash<br>crash: &lt;b&gt;ended&lt;/b&gt;"
    (counted,) = _failed(charts.trials(found, "BLOCK_M", ""))
    assert (counted["x"], counted["text"]) == ([1.0], [" 2"])


def _failed(figure: dict[str, object] | None) -> list[dict[str, object]]:
    assert figure is not None
    traces = figure["data"]
    assert isinstance(traces, list)
    return [one for one in traces if str(one.get("meta")).startswith("failed")]


def test_without_a_trial_there_is_no_figure() -> None:
    nothing = made([], [])
    assert charts.trials(nothing, TRIED, "") is None
    assert charts.slices(nothing) is None and charts.grid(nothing) is None


def test_an_axis_that_is_none_is_reported_and_left_out() -> None:
    names = ["BLOCK_M", "STAGES"]
    form = ExplorerForm({"x": MODELLED, "cell": "median"}, names)
    assert form.chosen("x") == TRIED and form.errors["x"]
    assert form.asked == GridQuery("", "", "median")
    both = ExplorerForm({"x": MODELLED}, names, (TRIED, MODELLED), ("measured", MODELLED))
    assert (both.chosen("x"), both.chosen("y"), both.has_times) == (MODELLED, "measured", True)
