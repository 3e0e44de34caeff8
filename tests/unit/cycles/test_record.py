"""Reports of the model as files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scheduler.cycles import report_json
from scheduler.cycles.report import VERSION, InstructionFigures, LaunchReport, StallReason
from scheduler.errors import UserError
from tests.support import modelled

LISTING = modelled.listing(
    ["global_load_dword v1, v0, s[0:1]", "s_waitcnt vmcnt(0)", "ds_write_b32 v2, v1"]
)


def test_a_report_is_read_as_it_was_written() -> None:
    report = modelled.report(LISTING, sizes={"s0": 64}, launches=3, unknown={"v_odd_b32": 2})
    read = report_json.read(report_json.write(report))
    assert read == report
    (wait,) = [one for one in read.launches[0].instructions if one.reasons]
    assert isinstance(wait, InstructionFigures)
    assert isinstance(read.launches[0], LaunchReport)
    assert all(isinstance(reason, StallReason) for reason in wait.reasons)


def test_a_report_of_another_version_is_none() -> None:
    report = modelled.report(LISTING)
    with pytest.raises(UserError, match=f"version {VERSION + 1} .* expected {VERSION}"):
        report_json.read(report_json.write(replace(report, version=VERSION + 1)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernel": 3}, r"'3' is not a str @ \$.kernel"),
        ({"launches": [{}]}, r"required field missing @ \$.launches\[0\].function"),
        ({"sizes": {"s0": 1.5}}, "is not an int"),
    ],
)
def test_what_is_no_report_is_one_line(change: dict[str, Any], says: str) -> None:
    data = report_json.to_json(modelled.report(LISTING)) | change
    with pytest.raises(UserError, match=says) as caught:
        report_json.read(json.dumps(data).encode())
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="not valid JSON"):
        report_json.read(b"{")
