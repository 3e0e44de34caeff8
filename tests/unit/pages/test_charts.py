"""What charts show of parameters that only some candidates name, and where times begin."""

from __future__ import annotations

from codegen_app import charts
from codegen_app.selectors.ledger import Curve, CurvePoint
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
    assert charts.best_so_far([curve], False)["layout"]["xaxis"]["rangemode"] == "nonnegative"
