"""How figures are written."""

from __future__ import annotations

from codegen_app.web.templatetags.kiln import us


def test_a_time_too_short_for_its_column_is_not_nothing() -> None:
    times = (None, 0.0, 0.4, 0.6, 1234.5)
    assert [us(ns) for ns in times] == ["", "0.000", "<0.001", "0.001", "1.234"]
