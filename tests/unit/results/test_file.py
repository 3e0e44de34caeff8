"""The file of recorded results: what is damaged in it is named, and nothing else is read."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scheduler import results
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.errors import UserError
from scheduler.results import file as results_file
from scheduler.results.model import Compiler
from scheduler.tuning.ledger import CandidateState
from tests.support import recorded

SCHEMA = json.loads(Path(results.__file__).with_name("schema.json").read_text())
CANDIDATE = "runs[0].tasks[0].candidates[0]"


@pytest.fixture(scope="module")
def good() -> Any:
    return json.loads(json.dumps(results_file.to_json(recorded.recorded())))


@pytest.fixture
def body(good: Any) -> Any:
    return copy.deepcopy(good)


def run(body: Any) -> Any:
    return body["runs"][0]


def first(body: Any) -> Any:
    return run(body)["tasks"][0]["candidates"][0]


def kernel(body: Any) -> Any:
    return next(iter(body["kernels"].values()))


def test_the_schema_describes_it(good: Any) -> None:
    jsonschema.validate(good, SCHEMA)


def test_it_holds_what_happened_to_every_candidate(good: Any) -> None:
    found = results_file.from_json(good, "r").runs[0]
    task, of = found.tasks[0], recorded.problem()
    assert len(task.candidates) == len(of.callers) + len(of.rejected), "none vanishes"
    assert [one.state for one in task.candidates[:3]] == ["done", "rejected", "cancelled"]
    assert (task.candidates[1].stage, task.candidates[1].reason) == ("crash", "an illegal address")
    timed = task.candidates[0].timed
    assert timed is not None
    assert timed.readings == {"sm_clock_mhz": (1980.0, 1980.0, 1965.0)}
    assert found.devices == (recorded.DEVICE,)


def test_a_build_names_the_compiler_of_its_own_language() -> None:
    cutedsl = Compiler("cutedsl", "4.8", "e" * 64, ("-O3",))
    results = recorded.recorded(others={CUTEDSL_SOURCE: cutedsl})
    found = results_file.from_json(json.loads(json.dumps(results_file.to_json(results))), "r")
    (run,) = found.runs
    compilers = {
        found.kernels[one.kernel].source_file: run.compilers[one.build.compiler].name
        for one in run.tasks[0].candidates
        if one.build is not None
    }
    assert compilers == {"source.hip": "bundled", "source.py": "cutedsl"}


def test_a_candidate_whose_compiler_was_not_there_has_no_build() -> None:
    reason = "no compiler for sm_90: install kiln[cutedsl]"
    of, was = recorded.problem(), {"stage": "compile", "reason": reason}
    place = [one.kernel.source_file for one in of.callers].index(CUTEDSL_SOURCE)
    entry = recorded.untried(of, place)
    refused = replace(entry, state=CandidateState.COMPILE_ERROR, order=3, at_s=1.0, **was)
    results = recorded.recorded(instead={place: refused})
    found = results_file.from_json(json.loads(json.dumps(results_file.to_json(results))), "r")
    line = next(one for one in found.runs[0].tasks[0].candidates if one.position == place)
    assert (line.state, line.stage, line.reason) == ("rejected", "compile", reason)
    assert (line.kernel, line.build) == ("", None)


@pytest.mark.parametrize("name", ["results.json", "results.json.gz"])
def test_reading_gives_what_was_written(tmp_path: Path, name: str) -> None:
    results_file.write(tmp_path / name, recorded.recorded())
    assert results_file.read(tmp_path / name) == recorded.recorded()


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "kind": lambda body: body.update(kind="x"),
    "listings[xyz]: no build has this code_digest": lambda body: body.update(listings={"xyz": "a"}),
    f"listings[{'d' * 64}]: must not be empty": lambda body: body["listings"].update(
        {"d" * 64: ""}
    ),
    "schema": lambda body: body.update(schema=2),
    "runs: no runs": lambda body: body.update(runs=[]),
    "runs[0].target": lambda body: run(body).update(target="toaster"),
    "runs[0].state": lambda body: run(body).update(state="running"),
    "runs[0].finished_at: must not be before": lambda body: run(body).update(
        finished_at="2001-01-01T00:00:00+00:00"
    ),
    "runs[0].started_at": lambda body: run(body).update(started_at="today"),
    "runs[0].origin.date": lambda body: run(body)["origin"].update(date="2026-11-20T12:00:00"),
    "runs[0].graph.digest": lambda body: run(body)["graph"].update(digest="ABC"),
    "runs[0].budget.seconds": lambda body: run(body)["budget"].update(seconds=-1.0),
    "runs[0].devices[0].emulated": lambda body: run(body)["devices"][0].update(emulated=True),
    "runs[0].devices[0].target": lambda body: run(body)["devices"][0].update(target="sm_80"),
    "runs[0].tasks[0].text": lambda body: run(body)["tasks"][0].update(text="x"),
    "runs[0].tasks[1].problem: duplicate": lambda body: run(body)["tasks"].append(
        run(body)["tasks"][0]
    ),
    "runs[0].tasks[0].candidates: duplicate position": lambda body: run(body)["tasks"][0][
        "candidates"
    ][2].update(position=0),
    f"{CANDIDATE}.timed.samples_ns: must be above 0": lambda body: first(body)["timed"].update(
        samples_ns=[0.0, 1.0]
    ),
    f"{CANDIDATE}.timed.metrics[time]": lambda body: first(body)["timed"]["samples_ns"].append(9.0),
    f"{CANDIDATE}.timed.check": lambda body: first(body)["timed"]["check"].update(ratio=2.0),
    f"{CANDIDATE}.timed.device": lambda body: first(body)["timed"].update(device=1),
    f"{CANDIDATE}.build.compiler": lambda body: first(body)["build"].update(compiler=-1),
    "resources[device_function]: required field missing @ $.spill_load_bytes": lambda body: first(
        body
    )["build"]["resources"]["device_function"].pop("spill_load_bytes"),
    "resources[device_function]: 'many' is not an int @ $.registers": lambda body: first(body)[
        "build"
    ]["resources"]["device_function"].update(registers="many"),
    "runs[0].tasks[0].operands": lambda body: run(body)["tasks"][0]["operands"].append(
        {"dtype": "x", "size": [], "stride": []}
    ),
    f"{CANDIDATE}.kernel": lambda body: first(body).update(kernel="rocm_other"),
    f"{CANDIDATE}.state": lambda body: first(body).update(state="\x00"),
    f"{CANDIDATE}.timed: does not fit state rejected": lambda body: first(body).update(
        state="rejected", reason="no"
    ),
    f"{CANDIDATE}.stage": lambda body: first(body).update(stage="launch"),
    f"{CANDIDATE}.detail": lambda body: first(body).update(detail="\ud800"),
    f"{CANDIDATE}.config": lambda body: first(body)["config"].update(BLOCK=2**70),
    "].source_digest": lambda body: kernel(body).update(source="// another"),
    "].workspace_bytes": lambda body: kernel(body).update(workspace_bytes="__import__('os')"),
    "kernels[../x]": lambda body: body["kernels"].update({"../x": kernel(body)}),
    "digest": lambda body: run(body).update(note="changed"),
}


@pytest.mark.parametrize("says", DAMAGES)
def test_damage_is_named_by_row_and_field(body: Any, says: str) -> None:
    DAMAGES[says](body)
    with pytest.raises(UserError) as error:
        results_file.from_json(body, "r.json")
    assert says in str(error.value)
    assert str(error.value).startswith("r.json: ")


def test_a_wrong_type_or_a_missing_field_is_named(body: Any) -> None:
    first(body)["timed"]["batch"] = "100"
    with pytest.raises(UserError, match=r"'100' is not an int @ .*candidates\[0\].timed.batch"):
        results_file.from_json(body, "r")
    del first(body)["timed"]["batch"]
    with pytest.raises(UserError, match=r"missing @ .*candidates\[0\].timed.batch"):
        results_file.from_json(body, "r")


def test_no_change_of_one_value_gets_through(good: Any) -> None:
    rng = random.Random(11)
    for _ in range(60):
        body = copy.deepcopy(good)
        holder, key = rng.choice(list(_leaves(body)))
        holder[key] = rng.choice([None, -1, "x", [], {}, 1e308, True, "\x00"])
        if body == good and type(holder[key]) is not bool:
            continue
        with pytest.raises(UserError):
            results_file.from_json(body, "r")


def _leaves(value: Any) -> Any:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list) and part:
            yield from _leaves(part)
        else:
            yield value, key


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("r.json", b"{", "not valid JSON"),
        ("r.json", b"\xff", "not valid JSON"),
        ("r.json", b'{"kind": NaN}', "NaN is not a number"),
        ("r.json", b"[" * 100_000, "not valid JSON"),
        ("r.json", b"[]", "not a results file"),
        ("r.json.gz", b"not compressed", "cannot be read"),
        ("r.json.gz", b"\x1f\x8b\x08\x00", "cannot be read"),
    ],
)
def test_what_is_no_such_file_is_one_line(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=says):
        results_file.read(tmp_path / name)
    with pytest.raises(UserError, match="cannot be read"):
        results_file.read(tmp_path / "nowhere.json")


def test_a_file_that_unpacks_to_more_than_it_may_is_not_read(tmp_path: Path) -> None:
    results_file.write(tmp_path / "r.json.gz", recorded.recorded())
    with pytest.raises(UserError, match="more than 0 MiB"):
        results_file.read(tmp_path / "r.json.gz", max_bytes=1000)
