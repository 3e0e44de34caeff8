"""What charts show of parameters that only some candidates name, and where times begin."""

from __future__ import annotations

from dataclasses import replace

from codegen_app import charts
from codegen_app.forms.axes import MEASURED, MODELLED, AxesForm
from codegen_app.selectors.ledger import Curve, CurvePoint
from codegen_app.selectors.modelled.candidates import ModelledTime
from codegen_app.selectors.pages.node import CandidateRow, Timing
from scheduler.benchmark.metrics import TIME, Metric


def row(position: int, **config: int) -> CandidateRow:
    time = Metric(2000.0, 1900.0, 2100.0, "ns", 30)
    timing = Timing("MI300X", "gfx942", {}, metrics={TIME: time})
    name = f"k{position}"
    return CandidateRow(position, "HIP C++", name, "", config, "", False, False, (), (), timing, ())


ROWS = [row(0, BLOCK_M=64, STAGES=1), row(1, BLOCK_M=128, STAGES=1, MATRIX_INSTR_NONKDIM=32)]


def test_a_parameter_that_one_does_not_name_differs() -> None:
    assert charts.axes(ROWS) == ("order", "BLOCK_M", "MATRIX_INSTR_NONKDIM")


def test_a_candidate_without_the_parameter_keeps_its_point() -> None:
    figure = charts.candidates(ROWS, "MATRIX_INSTR_NONKDIM", "")
    assert figure is not None
    assert figure["layout"]["xaxis"]["type"] == "category"
    assert figure["data"][0]["x"] == ["not named", 32]


def test_a_colour_has_a_name_for_those_without_the_parameter() -> None:
    figure = charts.candidates(ROWS, "BLOCK_M", "MATRIX_INSTR_NONKDIM")
    assert figure is not None
    names = [trace["name"] for trace in figure["data"]]
    assert names == ["MATRIX_INSTR_NONKDIM=32", "MATRIX_INSTR_NONKDIM=not named"]


def test_no_time_is_below_nothing() -> None:
    """A single point is in the middle of its axis, half of which would be less than zero."""
    figure = charts.candidates(ROWS[:1], "order", "")
    assert figure is not None
    assert figure["layout"]["yaxis"]["rangemode"] == "nonnegative"
    curve = Curve("op0", "addmm", (CurvePoint(1, 0.0, 2000.0),))
    assert charts.best_so_far([curve], "")["layout"]["xaxis"]["rangemode"] == "nonnegative"


def modelled(time_us: float) -> ModelledTime:
    return ModelledTime(time_us * 0.8, time_us, time_us * 1.2, "bound by LDS", {}, "/k")


BOTH = [replace(ROWS[0], modelled=modelled(1.5)), ROWS[1]]
UNTIMED = [replace(ROWS[0], timing=None, modelled=modelled(1.5)), replace(ROWS[1], timing=None)]


def test_modelled_time_is_an_axis_beside_the_measured_one() -> None:
    figure = charts.candidates(BOTH, MODELLED, "", MEASURED, "MI300X at s0=64")
    assert figure is not None
    (trace,) = figure["data"]
    assert (trace["x"], trace["y"]) == ([1.5], [2.0]), "who was not modelled has no point"
    assert trace["error_x"]["array"] == [1.7999999999999998 - 1.5]
    assert figure["layout"]["xaxis"]["title"]["text"] == "µs modelled on MI300X at s0=64"
    assert figure["layout"]["yaxis"]["title"]["text"] == "median µs"


def test_what_was_only_modelled_is_shown_without_a_measurement() -> None:
    assert charts.times(UNTIMED) == (MODELLED,)
    assert charts.candidates(UNTIMED, "order", "", MEASURED) is None
    figure = charts.candidates(UNTIMED, "order", "", MODELLED, "MI300X")
    assert figure is not None
    assert figure["data"][0]["y"] == [1.5]
    assert figure["layout"]["yaxis"]["title"]["text"] == "µs modelled on MI300X"


def test_axes_of_time_are_offered_where_there_are_times() -> None:
    plain = AxesForm({"x": MODELLED}, charts.axes(ROWS), times=charts.times(ROWS))
    assert (plain.axis_x, plain.axis_y, plain.has_times) == ("order", MEASURED, False)
    both = AxesForm({"x": MODELLED}, charts.axes(BOTH), times=charts.times(BOTH))
    assert (both.axis_x, both.axis_y, both.has_times) == (MODELLED, MEASURED, True)
    only = AxesForm({}, charts.axes(UNTIMED), times=charts.times(UNTIMED))
    assert only.axis_y == MODELLED
