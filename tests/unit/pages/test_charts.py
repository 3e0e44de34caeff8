"""What charts of runs show, and where times begin."""

from __future__ import annotations

from codegen_app.tuning import charts
from codegen_app.tuning.queries.ledger import Curve
from scheduler.tuning.ledger import CurvePoint


def test_no_time_is_below_nothing() -> None:
    """A single point is in the middle of its axis, half of which would be less than zero."""
    curve = Curve("op0", "addmm", (CurvePoint(1, 0.0, 2000.0),))
    assert charts.best_so_far([curve], "")["layout"]["xaxis"]["rangemode"] == "nonnegative"
