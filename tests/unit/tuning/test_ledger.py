"""The ledger: every candidate kept, the choice explained, read back as it was written."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.codegen.problem import ProblemShape
from scheduler.errors import Rejected, Stage, UserError
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext
from scheduler.tuning.autotune_log import autotune_text
from scheduler.tuning.decision import decide
from scheduler.tuning.ledger import (
    CandidateState,
    CurvePoint,
    Entry,
    Operand,
    best_of_backends,
    best_so_far,
    read_jsonl,
    state_of,
    write_jsonl,
)
from scheduler.tuning.warm_start import PriorResult, nearest_configs, read_prior_results

SHAPE = ProblemShape("gemm", ("f16",), (64, 32))


def entry(name: str, median: float | None = None, spread: float = 0.0, order: int = 0) -> Entry:
    """A candidate with that median and an interval of ``spread`` to both sides."""
    measured = None
    if median is not None:
        check = Check(True, 0.0, 1.0, 0.0, True)
        time = Metric(median, median - spread, median + spread, "ns", 1)
        measured = Measurement(name, "cpu", {}, (median,), 1, {TIME: time}, (), check, True)
    return Entry(
        problem="mm(64x32, 32x16) f16",
        node="op0",
        bindings={},
        kernel=name,
        template="gemm",
        config={"BLOCK_M": 64},
        description="BLOCK_M=64",
        state=CandidateState.UNTRIED if median is None else CandidateState.MEASURED,
        order=order,
        measurement=measured,
        shape=SHAPE,
    )


def chosen(entries: list[Entry]) -> int | None:
    """The place of the one that was decided for."""
    places = [p for p, one in enumerate(entries) if one.state is CandidateState.CHOSEN]
    return places[0] if places else None


def test_the_fastest_wins() -> None:
    marked = decide([entry("a", 10), entry("b", 5), entry("c", 7)], {0, 1, 2})
    assert [e.state for e in marked] == [
        CandidateState.MEASURED,
        CandidateState.CHOSEN,
        CandidateState.MEASURED,
    ]
    assert not any(e.tied for e in marked)


def test_a_tie_is_called_one_and_the_first_by_name_is_chosen() -> None:
    marked = decide([entry("z", 10.0, 1), entry("b", 10.1, 1), entry("a", 10.2, 1)], {0, 1, 2})
    assert chosen(marked) == 2
    assert all(e.tied for e in marked)


def test_the_default_stays_in_a_tie() -> None:
    default = replace(entry("z", 10.5, 1), is_default=True)
    assert chosen(decide([default, entry("a", 10.0, 1)], {0, 1})) == 0
    assert chosen(decide([default, entry("a", 9.0, 1)], {0, 1})) == 1


def test_only_those_that_reached_the_last_rounds_may_win() -> None:
    assert chosen(decide([entry("a", 10), entry("b", 5)], {0})) == 0
    assert chosen(decide([entry("a"), entry("b")], {0, 1})) is None


def test_every_stage_has_a_state() -> None:
    states = {state_of(Rejected(stage, "why")) for stage in Stage}
    assert states == set(CandidateState) - {
        CandidateState.UNTRIED,
        CandidateState.MEASURED,
        CandidateState.MODELLED,
        CandidateState.CHOSEN,
    }


def test_the_curve_falls_and_counts_what_was_rejected() -> None:
    points = best_so_far([(0.5, 9.0), (1.0, None), (1.5, 12.0), (2.5, 4.0)])
    assert points == (CurvePoint(1, 0.5, 9.0), CurvePoint(4, 2.5, 4.0))


def test_lines_are_read_back_and_warm_the_next_run(tmp_path: Path) -> None:
    marked = decide([entry("a", 10), entry("b", 5)], {0, 1})
    path = tmp_path / "ledger.jsonl"
    write_jsonl(path, {"seconds": 1.0}, marked)
    assert [line["fate"] for line in read_jsonl(path).values()] == ["measured", "chosen"]
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())
    measurement = read_jsonl(path)[3]["measurement"]
    assert measurement["median_ns"] == measurement["metrics"]["time"]["value"] == 5
    assert read_prior_results(path) == [
        PriorResult(ProblemShape("gemm", ("f16",), (64, 32)), {"BLOCK_M": 64}, "gemm")
    ]


def test_readers_of_the_first_ledgers_find_their_key_and_its_words() -> None:
    rejected = replace(entry("a"), state=CandidateState.REJECTED)
    assert (rejected.to_json()["state"], rejected.to_json()["fate"]) == ("rejected", "refused")
    assert entry("b", 5).to_json()["fate"] == "measured"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"record": "run", "schema": 99}', "\x00"])
def test_what_is_no_ledger_is_a_users_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match="ledger"):
        read_jsonl(path)


def test_the_nearest_problem_comes_first_and_another_kind_never() -> None:
    def known(template: str, *extents: int) -> PriorResult:
        return PriorResult(ProblemShape(template, ("f16",), extents), {"for": str(extents)})

    every = [
        known("gemm", 4096, 64),
        known("gemm", 64, 64),
        known("gemm", 64),
        known("scan", 64, 64),
    ]
    found = nearest_configs(every, ProblemShape("gemm", ("f16",), (128, 64)))
    assert found == [{"for": "(64, 64)"}, {"for": "(4096, 64)"}]


def test_the_log_reads_as_inductors_does() -> None:
    operands = [
        Operand("torch.float16", (64, 32), (32, 1)),
        Operand("torch.float16", (32, 16), (16, 1)),
    ]
    text = autotune_text(
        "mm(64x32, 32x16)", operands, [entry("rocm_slow", 2e6), entry("rocm_fast", 1e6)], 0.5
    )
    assert text.splitlines() == [
        "AUTOTUNE mm(64x32, 32x16) (times of the CPU emulation)",
        "strides: [32, 1], [16, 1]",
        "dtypes: torch.float16, torch.float16",
        "  rocm_fast 1.0000 ms 100.0% BLOCK_M=64",
        "  rocm_slow 2.0000 ms 50.0% BLOCK_M=64",
        "SingleProcess AUTOTUNE benchmarking takes 0.5000 seconds for 2 choices",
    ]
    context = ImportContext(now=datetime(2026, 11, 21, tzinfo=UTC), device="cpu", revision="abc")
    (point,) = importer.read(text.encode(), context).points
    assert (point.value, point.conditions["kernel"]) == (1e6, "rocm_fast")


def test_the_log_says_which_backend_won_and_by_how_much() -> None:
    times = {"rocm_a": 3e6, "cutedsl_a": 2e6, "rocm_b": 5e6, "cutedsl_b": 1e6}
    entries = [entry(kernel, time) for kernel, time in times.items()]
    best = best_of_backends(entries)
    assert [(one.backend, one.kernel, one.timed, one.ratio) for one in best] == [
        ("cutedsl", "cutedsl_b", 2, 1.0),
        ("rocm", "rocm_a", 2, 3.0),
    ]
    lines = autotune_text("mm(64x32, 32x16)", [], entries, 0.5).splitlines()
    assert lines[-2] == (
        "best of each backend: cutedsl 1.0000 ms (n=1, 2 timed; 1.00x),"
        " rocm 3.0000 ms (n=1, 2 timed; 3.00x)"
    )


def test_a_line_that_lacks_something_is_named_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    write_jsonl(path, {}, decide([entry("a", 10)], {0}))
    path.write_text(path.read_text().replace('"extents": [64, 32]', '"extents": [64, "32"]'))
    with pytest.raises(
        UserError, match=r"ledger.jsonl, line 2: '32' is not an int @ .*extents\[1\]"
    ):
        read_prior_results(path)
