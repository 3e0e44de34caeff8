"""Files of other tools, as their tools write them, and our own: what each becomes, and refusals.

``files/pytest_benchmark.json`` is of a run of pytest-benchmark 5.3.1 (shortened; the commit is made
up); the others follow their tools' documentation.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scheduler.errors import UserError
from scheduler.results.points import importer, native
from scheduler.results.points.formats import common
from scheduler.results.points.model import (
    FACTS,
    MAX_POINTS,
    ImportContext,
    Point,
    Points,
    RevisionKey,
)

FILES = Path(__file__).parent / "files"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
SAID = ImportContext(now=NOW, device="AMD EPYC", target="x86", toolchain="gcc", revision="abc")
SCHEMA = json.loads((Path(native.__file__).parent / "schema.json").read_text())


def read(name: str, context: ImportContext = SAID, kind: str = importer.AUTO) -> Points:
    return importer.read((FILES / name).read_bytes(), context, kind)


def figures(points: Points) -> dict[tuple[str, str], tuple[float, str, int]]:
    return {
        (one.series.problem, one.series.metric): (round(one.value, 3), one.series.unit, one.n)
        for one in points.points
    }


def test_pytest_benchmark() -> None:
    found = read("pytest_benchmark.json", ImportContext(now=NOW))
    assert found.left_out == ()
    names = [one.series.problem for one in found.points]
    assert names == [f"test_sum.py::test_{n}" for n in ("sum[100]", "sum[1000]", "sort")]
    raw = json.loads((FILES / "pytest_benchmark.json").read_text())["benchmarks"]
    for one, row in zip(found.points, raw, strict=True):
        assert (one.series.metric, one.series.unit, one.series.device) == ("time", "ns", "AMD EPYC")
        assert one.revision.name == "4f1c2c4be4d6ef1b3a7a7ad9d8ba58d0f6c2a1b3"
        assert (one.revision.branch, one.at) == (
            "main",
            datetime(2026, 11, 20, 8, 12, 44, tzinfo=UTC),
        )
        assert one.measured_at.isoformat()[:16] == "2026-11-21T22:05"
        data = row["stats"].get("data")
        if data is None:  # as --benchmark-autosave leaves it
            assert one.value == pytest.approx(row["stats"]["median"] * 1e9)
            assert (one.samples, one.low) == ((), None)
        else:
            assert one.samples == pytest.approx([s * 1e9 for s in data])
            assert one.value == pytest.approx(sorted(data)[12] * 1e9)
            assert one.low is not None
            assert one.high is not None
            assert min(one.samples) <= one.low <= one.value <= one.high <= max(one.samples)
        facts = {"runtime": "CPython 3.11.7", "host": "Linux 6.18.44", "path": "test_sum.py"}
        assert one.conditions == facts


def test_a_branch_that_no_column_can_keep_is_refused() -> None:
    content = json.loads((FILES / "pytest_benchmark.json").read_text())
    content["commit_info"]["branch"] = "\0"
    with pytest.raises(UserError, match=r"commit_info\.branch"):
        importer.read(json.dumps(content).encode(), ImportContext(now=NOW))


def test_pytest_benchmark_outside_of_a_history_needs_a_revision() -> None:
    content = json.loads((FILES / "pytest_benchmark.json").read_text())
    content["commit_info"] = {"id": "unversioned", "time": None, "branch": "(unknown)"}
    data = json.dumps(content).encode()
    with pytest.raises(UserError, match=r"^revision: missing in the file"):
        importer.read(data, ImportContext(now=NOW))
    assert importer.read(data, SAID).points[0].revision.name == "abc"


def test_google_benchmark() -> None:
    found = read("google_benchmark.json")
    assert figures(found) == {
        ("BM_saxpy/1048576", "time"): (581_200.0, "ns", 3),
        ("BM_saxpy/1048576", "cpu_time"): (580_900.0, "ns", 3),
        ("BM_saxpy/1048576", "bytes_per_second"): (21_650_000_000.0, "B/s", 3),
        ("BM_transpose/64", "time"): (1_500_000.0, "ns", 5),
        ("BM_transpose/64", "cpu_time"): (1_250_000.0, "ns", 5),
        ("BM_fft/4096", "time"): (13_380.0, "ns", 1),
        ("BM_fft/4096", "cpu_time"): (13_375.0, "ns", 1),
    }
    by_metric = {one.series.metric: one for one in found.points}
    assert by_metric["bytes_per_second"].better == "higher"
    assert found.points[0].samples == pytest.approx((581_200.0, 579_800.0, 590_400.0))
    assert found.points[0].measured_at == datetime(2026, 11, 20, 14, 2, 11, tzinfo=UTC)
    assert by_metric["time"].low is None, "a mean of iterations has no interval"
    (failed,) = found.left_out
    assert (failed.where, failed.reason) == ("benchmarks[7]", "BM_gemm_f8: this CPU has no f8")


def test_bencher() -> None:
    found = read("bencher.json")
    assert figures(found) == {
        ("bench_matmul", "time"): (88.0, "ns", 1),
        ("bench_matmul", "throughput"): (5.55, "ops/s", 1),
        ("bench_build", "file-size"): (1048576.0, "B", 1),
        ("bench_build", "branch-misses"): (1234.0, "", 1),
    }
    latency = found.points[0]
    assert (latency.low, latency.high, latency.measured_at) == (87.42, 88.88, NOW)
    assert [one.better for one in found.points[:2]] == ["lower", "higher"]


def test_autotune_logs() -> None:
    found = read("autotune.log")
    first, second = found.points
    bf16 = "dtypes: torch.bfloat16, torch.bfloat16"
    assert first.series.problem == f"mm(4096x4096, 4096x4096) strides: [4096, 1], [4096, 1] {bf16}"
    assert (first.value, first.conditions) == (pytest.approx(204_500), {"kernel": "mm"})
    assert second.series.problem.startswith("addmm(512x768, 512x3072, 3072x768) strides: [0, 1]")
    assert second.value == pytest.approx(11_300)
    assert second.conditions["kernel"] == "triton_mm_58"
    assert second.conditions["flags"].startswith("ACC_TYPE='tl.float32', BLOCK_K=64")
    (failed,) = found.left_out
    assert failed.where == "line 17"
    assert failed.reason == "convolution(8x3x224x224, 64x3x7x7): no choice has a time"


def test_a_log_without_such_a_block_is_refused() -> None:
    with pytest.raises(UserError, match="no AUTOTUNE block"):
        importer.read(b"loss 3.14\n", SAID, "autotune")
    with pytest.raises(UserError, match="invalid JSON"):
        importer.read(b"loss 3.14\n", SAID)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pytest_benchmark.json", "pytest-benchmark"),
        ("google_benchmark.json", "google-benchmark"),
        ("bencher.json", "bmf"),
        ("autotune.log", "autotune"),
    ],
)
def test_a_format_that_is_named_is_the_one_that_is_found(name: str, kind: str) -> None:
    assert read(name, kind=kind) == read(name)
    other = "google-benchmark" if kind != "google-benchmark" else "bmf"
    with pytest.raises(UserError):
        read(name, kind=other)


def row(**fields: Any) -> dict[str, Any]:
    given = {"problem": "mm", "device": "H200", "metric": "time", "unit": "ns", "value": 1.5}
    return given | {"revision": "abc"} | fields


def whole(*points: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "kiln points", "schema": 1, "points": list(points)} | more


def test_our_own_points_come_back_as_they_were_written() -> None:
    revision = {"name": "abc", "at": "2026-11-01T00:00:00+00:00", "branch": "main"}
    facts = {name: "x" if kind is str else {"a": [1, "b", None]} for name, kind in FACTS.items()}
    given = whole(
        row(revision=revision, conditions=facts, sizes={"M": 64}, samples=[1, 2], low=1, high=2)
    )
    jsonschema.validate(given, SCHEMA)
    points = native.read(given, SAID).points
    written = json.loads(json.dumps(native.write(points)))
    jsonschema.validate(written, SCHEMA)
    assert native.read(written, ImportContext(now=NOW)).points == points


def test_every_tools_points_can_be_written_as_our_own() -> None:
    for name in ("pytest_benchmark.json", "google_benchmark.json", "bencher.json", "autotune.log"):
        points = read(name).points
        written = native.write(points)
        jsonschema.validate(json.loads(json.dumps(written)), SCHEMA)
        assert native.read(written, ImportContext(now=NOW)).points == points


def test_what_many_points_share_is_said_once() -> None:
    defaults = {"device": "MI300X", "revision": {"name": "v1"}, "conditions": {"driver": "6.4"}}
    short = {"problem": "mm", "metric": "time", "unit": "ns", "value": 1}
    first, second = native.read(
        whole(short, row(device="H200"), defaults=defaults), ImportContext(now=NOW)
    ).points
    assert (first.series.device, first.revision.name) == ("MI300X", "v1")
    assert (second.series.device, second.revision.name) == ("H200", "abc")
    assert first.conditions == second.conditions == {"driver": "6.4"}


REFUSED = [
    whole(row(value=None)),
    whole(row(problem="")),
    whole(row(n=0)),
    whole(row(better="up")),
    whole(row(sizes={"M": 1.5})),
    whole(row(sizes=[64])),
    whole(row(conditions={"driver": 6})),
    whole(row(revision={"name": ""})),
    whole(row(revision={"commit": "abc"})),
    whole(row(colour="red")),
    whole(row(), colour="red"),
    whole(),
    whole("mm"),
    {"kind": "kiln points", "schema": 1},
    whole(row(samples=[1.0] * 1001)),
]


@pytest.mark.parametrize("content", REFUSED, ids=range(len(REFUSED)))
def test_the_schema_and_the_reader_refuse_the_same(content: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, SCHEMA)
    with pytest.raises(UserError):
        native.read(content, SAID)


FULL = {"sizes": {"M": 64}, "conditions": {"driver": "6.4", "config": {"tile": 1}}}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"sizes": {"M": -1}}, "sizes.M: expected an integer"),
        ({"sizes": {"M": True}}, "sizes.M: expected an integer"),
        ({"sizes": {"": 64}}, "sizes: must not be empty"),
        ({"sizes": {str(n): 64 for n in range(101)}}, "sizes: more than 100"),
        ({"problem": ["mm"]}, "problem: expected a string"),
        ({"device": " "}, "device: must not be empty"),
        ({"device": 1, "unit": "ms"}, "device: expected a string"),
        ({"value": 10**400}, "value: must be finite"),
        ({"samples": [1.0, True]}, "samples[1]: expected a number"),
        ({"samples": [1e150, 1e999]}, "samples[1]: must be finite"),
        ({"low": 1.0}, "low: low and high must be given together"),
        ({"high": 1.0, "low": 1.0}, "high: must not be below the value"),
        ({"measured_at": None}, "measured_at: expected a string"),
        ({"conditions": {"colour": "red"}}, "conditions.colour: unknown field"),
        ({"conditions": {"driver": "\0"}}, "conditions.driver: must not contain NUL"),
        ({"conditions": {"driver": "x" * 1001}}, "conditions.driver: more than 1000"),
        ({"conditions": {"config": [1]}}, "conditions.config: expected a JSON object"),
        ({"conditions": {"config": {"tile": "\0"}}}, "conditions.config: must not contain NUL"),
        ({"conditions": {"config": {"tile": 2**63}}}, "conditions.config: contains a number"),
    ],
)
def test_what_is_wrong_after_one_that_is_right_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError) as refused:
        native.read(whole(row(**FULL), row(**FULL | fields)), SAID)
    assert str(refused.value).startswith(f"points[1].{named}")


def test_options_describe_their_own_commit_only() -> None:
    """A file may have points of several commits; the client's options are those of one."""
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    commit = {"revision": "abc", "revision_at": moment, "merge_base": "base", "pull_request": "12"}
    commit |= {"merge_base_at": moment}
    context = ImportContext(now=NOW, branch="topic", repository="app", **commit)
    rows = [row(revision="abc"), row(revision="def"), row(revision={"name": "abc", "at": None})]
    described, other, third = (
        point.revision for point in native.read(whole(*rows), context).points
    )
    assert described == third == context.revision_key
    assert other == RevisionKey("def", repository="app")


@pytest.mark.parametrize("name", ["3f2a9c0", "3f2a9c01b4de-dirty", "3f2a9c01b4de"])
def test_options_describe_their_commit_by_a_shortened_name_too(name: str) -> None:
    """Without the branch, a point of a pull request would be one of the trunk."""
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    context = ImportContext(
        now=NOW, revision="3f2a9c01b4de", revision_at=moment, branch="topic", merge_base="base"
    )
    rows = [row(revision=name), row(revision="3f2a9c"), row(revision="3f2a9c1")]
    same, *others = (point.revision for point in native.read(whole(*rows), context).points)
    assert same == RevisionKey(name, at=moment, branch="topic", merge_base="base")
    assert {revision.branch for revision in others} == {""}


def test_what_is_like_another_keeps_what_was_sent_of_it() -> None:
    sent: list[Any] = [1, True, 1.0, [1], {"a": 1}]
    facts = [{"config": {"tile": tile}, "kernel": "mm"} for tile in sent]
    points = native.read(whole(*(row(conditions=one) for one in facts)), SAID).points
    kept = [point.conditions["config"]["tile"] for point in points]
    assert [(type(one), one) for one in kept] == [(type(one), one) for one in sent]
    large = native.read(whole(row(samples=[1e150, -1e150, 0.0])), SAID).points
    assert large[0].samples == (1e150, -1e150, 0.0)


def test_a_batch_has_a_limit() -> None:
    points = [row()] * (MAX_POINTS + 1)
    with pytest.raises(UserError, match=f"expected 1 to {MAX_POINTS} points"):
        native.read(whole(*points), SAID)
    many = {f"b{n}": {"latency": {"value": 1}} for n in range(MAX_POINTS + 1)}
    with pytest.raises(UserError, match="split the file"):
        importer.read(json.dumps(many).encode(), SAID)


def many(kind: str, n: int) -> bytes:
    """A file of that tool's with so many points, and behind them a row that is wrong."""
    if kind == "autotune":
        block = "AUTOTUNE mm{}(2x2)\n  x 0.1 ms 100.0%\nAUTOTUNE takes 1 second\n"
        return "".join(map(block.format, range(n))).encode() + b"AUTOTUNE mm(2x2)\n"
    if kind in ("bmf", "bmf measures", "bmf values", "bmf parameters"):
        benchmarks: dict[str, dict[str, Any]] = {
            "bmf": {f"b{at}": {"latency": {"value": 1}} for at in range(n)},
            "bmf measures": {"b": {f"m{at}": {"value": 1} for at in range(n)}},
            "bmf values": {"b": [{"measures": {"m": {f"p{at}": 1 for at in range(n)}}}]},
            "bmf parameters": {
                "b": [{"parameters": {"n": at}, "measures": {"m": {"value": 1}}} for at in range(n)]
            },
        }
        return json.dumps(benchmarks[kind] | {"last": {"latency": {"value": "none"}}}).encode()
    figures: dict[str, Any] = {"stats": {"median": 1}, "real_time": 1, "cpu_time": 1}
    rows: list[Any] = [{"name": f"b{at}", **figures} for at in range(n)]
    if kind == "google-benchmark":
        rows = rows[: -(-n // 2)]  # of which each is two points
    elif kind == "google counters":
        rows = [{"name": "b", **figures, **{f"c{at}": 1 for at in range(n - 2)}}]
    about = "machine_info" if kind == "pytest-benchmark" else "context"
    return json.dumps({about: {}, "benchmarks": [*rows, 1]}).encode()


@pytest.mark.parametrize(
    "kind",
    [
        *("autotune", "bmf", "bmf measures", "bmf values", "bmf parameters"),
        *("google-benchmark", "google counters", "pytest-benchmark"),
    ],
    ids=str,
)
def test_the_limit_of_a_batch_ends_the_reading(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the file that is too long, not a row that is left out, and what is left out counts."""
    monkeypatch.setattr(common, "MAX_POINTS", 25)
    for most in (4, 24):
        found = importer.read(many(kind, most), SAID)
        assert (len(found.points), len(found.left_out)) == (most, 1)
    for more in (26, 60):
        with pytest.raises(UserError, match=r"more than 25 points.*: split the file"):
            importer.read(many(kind, more), SAID)


@pytest.mark.parametrize("kind", ["bmf", "google-benchmark"])
def test_a_file_has_so_many_rows(kind: str) -> None:
    """Repetitions of a few benchmarks are few points, however many they are."""

    def file(n: int) -> bytes:
        rows: dict[str, Any] = {
            "bmf": {"b": [{"measures": {"m": {"value": 1}}}] * n},
            "google-benchmark": {
                "context": {},
                "benchmarks": [{"name": "b", "real_time": 1, "cpu_time": 1}] * n,
            },
        }
        return json.dumps(rows[kind]).encode()

    assert importer.read(file(MAX_POINTS + 1), SAID).points
    with pytest.raises(UserError, match="more than 100000 rows: split the file"):
        importer.read(file(100_001), SAID)


def test_figures_that_stand_twice_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "MAX_POINTS", 4)
    rows = [{"name": name, "stats": {"median": 1}} for name in "aabc"]
    found = importer.read(json.dumps({"machine_info": {}, "benchmarks": rows}).encode(), SAID)
    assert (len(found.points), len(found.left_out)) == (2, 2)


def test_what_is_left_out_counts_as_points_do() -> None:
    skipped = [{"name": "b", "skipped": True}] * (MAX_POINTS + 1)
    with pytest.raises(UserError, match="split the file"):
        importer.read(json.dumps({"context": {}, "benchmarks": skipped}).encode(), SAID)
    with pytest.raises(UserError, match="split the file"):
        importer.read(b"AUTOTUNE mm()\n" * (MAX_POINTS + 1), SAID)


def test_nested_conditions_of_a_batch_have_a_size() -> None:
    """What looking at each of their parts takes is known before."""
    nested: dict[str, Any] = {"attributes": {"a": [[]] * 15_000}}  # 60 KB, which a point may have
    assert native.read(whole(row(conditions=nested)), SAID).points
    with pytest.raises(UserError, match=r"points\[69\].*split the batch"):
        native.read(whole(*(row(conditions=nested) for _ in range(100))), SAID)
    with pytest.raises(UserError, match=r"points\[0\].conditions.attributes: more than 65536 byte"):
        native.read(whole(row(conditions={"attributes": {"a": [[]] * 20_000}})), SAID)
    flat = {"clocks": {f"clock {at}": at + 0.5 for at in range(49)} | {"boost": True}}
    assert len(native.read(whole(*[row(conditions=flat)] * 5_000), SAID).points)


WRONG_NUMBERS = [
    True,
    "1",
    None,
    [],
    10**400,
    -(10**400),
    float("inf"),
    float("nan"),
    1e151,
    1e-151,
]


@pytest.mark.parametrize("wrong", WRONG_NUMBERS)
@pytest.mark.parametrize("right", [[1, 2.5], [0, -0.0], [-3, 1e150], [1e-150], []])
def test_a_sample_that_is_no_number_is_named(wrong: Any, right: list[Any]) -> None:
    place = len(right)
    with pytest.raises(UserError, match=rf"points\[0\].samples\[{place}\]: "):
        native.read(whole(row(samples=[*right, wrong, 1])), SAID)
    (point,) = native.read(whole(row(samples=right)), SAID).points
    assert [(type(one), one) for one in point.samples] == [(float, one) for one in right]


def series_of(**fields: Any) -> str:
    (point,) = native.read(whole(row(**fields)), SAID).points
    return point.series.digest


def test_what_makes_a_series() -> None:
    same = series_of()
    for fields in (
        {"value": 2.0},
        {"revision": "def"},
        {"conditions": {"driver": "6.4", "toolchain_version": "22"}},
        {"target": "x86"},
    ):
        assert series_of(**fields) == same, fields
    others = [
        series_of(**{name: text})
        for name in ("problem", "device", "target", "toolchain", "metric", "unit")
        for text in ["other"]
    ]
    assert len({same, series_of(sizes={"M": 64}), *others}) == 8
    assert series_of(sizes={"M": 64, "N": 8}) == series_of(sizes={"N": 8, "M": 64})


def test_a_name_that_is_sent_is_no_problem_of_ours() -> None:
    from dataclasses import replace

    (sent,) = native.read(whole(row(problem="d" * 64)), SAID).points
    ours: Point = replace(sent, series=replace(sent.series, own="d" * 64))
    renamed = replace(ours, series=replace(ours.series, problem="retitled"))
    assert ours.series.digest != sent.series.digest
    assert ours.series.digest == renamed.series.digest
    with pytest.raises(UserError, match="recorded results"):
        native.write([ours])


LATE = {
    "points": ("kiln", lambda at: {"measured_at": at}, "points[1].measured_at"),
    "revision": ("kiln", lambda at: {"revision": {"name": "a", "at": at}}, "points[1].revision.at"),
}


def moved(name: str, at: str) -> bytes:
    """A file of each kind that says a moment, with that moment in place of its own."""
    if name in LATE:
        rows = [
            {"problem": "mm", "value": 1.0},
            {"problem": "mm", "value": 1.0} | LATE[name][1](at),
        ]
        defaults = {"device": "H200", "metric": "time", "revision": "abc"}
        return json.dumps(
            {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": rows}
        ).encode()
    file = "google_benchmark.json" if name == "context.date" else "pytest_benchmark.json"
    content = json.loads((FILES / file).read_text())
    if name == "datetime":
        content["datetime"] = at
    else:
        part, _, field = name.partition(".")
        content[part].pop("author_time", None)
        content[part][field] = at
    return json.dumps(content).encode()


@pytest.mark.parametrize("name", [*LATE, "datetime", "commit_info.time", "context.date"], ids=str)
def test_a_moment_in_the_future_is_refused_by_name(name: str) -> None:
    """Five minutes are allowed for clocks that differ."""
    context = ImportContext(now=NOW, device="AMD EPYC", revision="" if "." in name else "abc")
    if name == "context.date":
        context = SAID
    importer.read(moved(name, (NOW + timedelta(minutes=5)).isoformat()), context)
    for late in (NOW + timedelta(minutes=5, seconds=1), NOW.replace(year=2199)):
        with pytest.raises(UserError) as error:
            importer.read(moved(name, late.isoformat()), context)
        line = str(error.value)
        where = LATE[name][2] if name in LATE else name
        assert line.startswith(f"{where}: {late:%Y-%m-%d %H:%M:%S} UTC is in the future"), line
        assert "5 minutes" in line


@pytest.mark.parametrize("value", [1e-151, -1e-151, 1e151, -1e300, 5e-324, 1.7e308])
@pytest.mark.parametrize("name", ["value", "low", "high", "samples"])
def test_numbers_whose_ratio_is_no_number_are_refused(name: str, value: float) -> None:
    least, most = min(value, 1.0), max(value, 1.0)
    row = {"problem": "mm", "value": 1.0, "low": least, "high": most, "samples": [1.0]}
    row[name] = [1.0, value] if name == "samples" else value
    head = {"device": "H200", "metric": "time", "revision": "abc"}
    body = {"kind": "kiln points", "schema": 1, "defaults": head, "points": [row]}
    with pytest.raises(UserError, match="expected 0 or a magnitude from 1e-150 to 1e\\+150"):
        importer.read(json.dumps(body).encode(), SAID)
