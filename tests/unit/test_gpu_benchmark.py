"""The benchmark beside torch on an NVIDIA GPU: what of it needs no GPU."""

from __future__ import annotations

import json
import math
import subprocess
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from scheduler.runtime import cuda
from scheduler.runtime.device import AbsentDevice
from tests.benchmarks.gpu import __main__ as command
from tests.benchmarks.gpu import compilers
from tests.benchmarks.gpu.compilers import c_compiler
from tests.benchmarks.gpu.files import before
from tests.benchmarks.gpu.results import Bar, Outcome, Row, Verdict, judged, row_of, spread
from tests.benchmarks.gpu.table import said, table


def a_row(**outcomes: Outcome) -> Row:
    readings = {
        "sm_clock_mhz": {"min": 1755.0, "max": 1980.0},
        "throttled_power": {"min": 0.0, "max": 1.0},
    }
    return Row("softmax 8192x4096", 0.0, 134_000_000.0, 1.1e-2, outcomes, readings)


def right(median: float) -> Outcome:
    return Outcome(2e-3, "", spread([median * 0.99, median, median * 1.01]), 1.0)


def cells(text: str, line: int) -> list[str]:
    return [cell.strip() for cell in text.splitlines()[line].strip("|").split("|")]


def test_a_spread_holds_the_median_its_interval_and_the_middle_half() -> None:
    found = spread([10.0, 20.0, 30.0, 40.0, 50.0])
    assert (found.median, found.n) == (30.0, 5)
    assert (found.first_quartile, found.third_quartile) == (20.0, 40.0)
    assert found.low <= found.median <= found.high
    with pytest.raises(ValueError, match="no samples"):
        spread([])


def test_a_result_without_numbers_is_wrong() -> None:
    assert judged(1e-3, 1e-2) == ""
    assert "at most 1.00e-02 is right" in judged(2e-2, 1e-2)
    assert judged(math.nan, 1e-2)


def test_the_table_shows_ratios_also_where_kiln_is_slower() -> None:
    text = table([a_row(kiln=right(100.0), eager=right(50.0), compile=right(200.0))])
    found = dict(zip(cells(text, 0), cells(text, 2), strict=True))
    assert found["Kiln µs"] == "100.0 ±0.5%"
    assert (found["Kiln / eager"], found["Kiln / compile"]) == ("2.00", "0.50")
    assert found["TB/s"] == "1.34"
    assert "Kiln tuned µs" not in found
    assert "SM clock while measuring: 1755 to 1980 MHz" in text
    assert "the clock was held down meanwhile (power)" in text


def test_the_fastest_of_ours_is_held_against_the_peer() -> None:
    row = a_row(kiln=right(100.0), cutedsl=right(60.0), compile=right(50.0), copy=right(57.0))
    best, hip, copy = Bar("compile", 1.25), Bar("compile", 1.5, ("kiln",)), Bar("copy", 1.176)
    assert row.ratio("compile") == pytest.approx(1.2)
    found = [row.verdict(bar) for bar in (best, hip, copy)]
    assert found == [Verdict.REACHED, Verdict.MISSED, Verdict.REACHED]
    assert replace(row, bars=(hip,)).missed
    assert not replace(row, bars=(best, copy)).missed
    text = table([replace(row, bars=(best, hip))])
    assert "Kiln / compile ≤ 1.25: 1.20; HIP C++ / compile ≤ 1.5: 2.00 MISSED" in text
    assert "- bars: 1 reached, 0 within noise, 1 missed, 0 not judged" in text


def test_a_bar_without_its_peer_is_not_judged() -> None:
    row = replace(a_row(kiln=right(1.0)), bars=(Bar("compile", 1.0),))
    assert row.verdict(row.bars[0]) is Verdict.NOT_JUDGED
    assert not row.missed
    assert "≤ 1: not timed" in table([row])


def test_what_the_samples_cannot_tell_from_a_bar_is_no_miss() -> None:
    row = replace(a_row(kiln=right(101.0), compile=right(100.0)), bars=(Bar("compile", 1.0),))
    assert row.verdict(row.bars[0]) is Verdict.TIED
    assert not row.missed
    assert "≤ 1: 1.010, within noise" in table([row])
    assert replace(row, outcomes={"kiln": right(103.0), "compile": right(100.0)}).missed


def test_a_bar_that_a_copy_misses_too_says_so() -> None:
    row = a_row(kiln=right(93.0), compile=right(100.0), copy=right(92.0))
    assert "≤ 0.8: 0.93 MISSED, a copy takes 0.92" in table(
        [replace(row, bars=(Bar("compile", 0.8),))]
    )
    assert "≤ 0.9: 0.93 MISSED, a copy" in table([replace(row, bars=(Bar("compile", 0.9),))])
    faster = replace(row, outcomes={**row.outcomes, "copy": right(70.0)})
    assert "≤ 0.8: 0.93 MISSED;" in f"{said(faster, Bar('compile', 0.8))};"


def test_a_language_that_serves_no_kernel_is_no_failure_and_a_wrong_one_is() -> None:
    assert not a_row(kiln=right(1.0), cutedsl=Outcome(wrong="not built")).failed
    assert a_row(kiln=right(1.0), cutedsl=Outcome(0.5, judged(0.5, 1e-2))).failed
    assert Row.lost("a", "the process ended with -11", ()).failed


def test_a_row_is_read_again_from_json() -> None:
    row = replace(
        a_row(kiln=right(3.0), compile=Outcome(0.5, "far off")),
        bars=(Bar("compile", 1.5, ("kiln",)),),
    )
    assert row_of(json.loads(json.dumps(asdict(row)))) == row


def test_what_was_measured_is_left_out_of_the_next_run(tmp_path: Path) -> None:
    kept, again = a_row(kiln=right(3.0)), replace(a_row(kiln=Outcome(wrong="hung")), name="b")
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({"rows": [asdict(kept), asdict(again)]}))
    assert before(Namespace(resume=True, json=file), row_of) == [kept]
    assert before(Namespace(resume=False, json=file), row_of) == []


def test_every_line_of_the_table_is_as_wide() -> None:
    rows = [a_row(kiln=right(9.0), eager=right(5.0)), a_row(kiln=right(12345.6), eager=right(5.0))]
    assert len({len(line) for line in table(rows).splitlines()[:4]}) == 1


def test_what_is_wrong_is_not_timed_and_said_below() -> None:
    row = a_row(
        kiln=Outcome(0.5, judged(0.5, 1e-2)),
        eager=right(50.0),
        compile=Outcome(wrong="InductorError: no compiler"),
    )
    text = table([row])
    found = dict(zip(cells(text, 0), cells(text, 2), strict=True))
    assert (found["Kiln µs"], found["compile µs"], found["Kiln / eager"]) == ("WRONG", "none", "")
    assert "- softmax 8192x4096, Kiln: error 5.00e-01" in text
    assert "compile: InductorError: no compiler" in text
    assert row.failed
    assert not a_row(kiln=right(1.0), compile=Outcome(wrong="none here")).failed


def test_triton_gets_the_compiler_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = c_compiler({"CC": "icx"}, tmp_path)
    assert named is not None
    assert named.command == "icx"
    gcc = tmp_path / "gcc"
    gcc.write_text("#!/bin/sh\n")
    gcc.chmod(0o755)
    found = c_compiler({"PATH": str(tmp_path)}, tmp_path)
    assert found is not None
    assert found.command == str(gcc)
    monkeypatch.setattr(compilers, "_zig", lambda: None)
    assert c_compiler({"PATH": ""}, tmp_path) is None


@pytest.mark.full
def test_the_bundled_compiler_stands_in_for_triton(tmp_path: Path) -> None:
    """Its script makes a library, as Triton asks it to."""
    found = c_compiler({"PATH": ""}, tmp_path)
    assert found is not None
    source = tmp_path / "launcher.c"
    source.write_text("int launch(void) { return 0; }\n")
    made = tmp_path / "launcher.so"
    options = ["-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", str(made)]
    subprocess.run([found.command, str(source), *options], check=True, timeout=120)
    assert made.read_bytes()[:4] == b"\x7fELF"


def test_without_a_gpu_nothing_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    absent = (AbsentDevice("cuda", "no driver here"),)
    provider = type(cuda.DEVICES)
    monkeypatch.setattr(provider, "probe", lambda _: absent)
    assert command.main([]) == command.NO_GPU
    assert capsys.readouterr().out == "nothing is measured: no NVIDIA GPU: no driver here\n"


def test_without_torch_nothing_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command.main([]) == command.NO_GPU
    assert capsys.readouterr().out == "nothing is measured: torch is not installed\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tune", "soon"], "--tune: budget 'soon': write a time"),
        (["--results", "nowhere.json"], "--results: nowhere.json"),
        (["--rounds", "1"], "--rounds: '1': a number of at least 2"),
    ],
)
def test_an_argument_that_cannot_be_is_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert says in capsys.readouterr().err
