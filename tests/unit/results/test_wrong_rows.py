"""Files of other tools in which something is wrong: a row without a figure is left out by name and
the others are stored; what is wrong in all of the file is refused in one line.

``files/odd`` has small files of the kinds that people report: of Google Benchmark its issue 379
(complexities before ``run_type``) and others made by hand after its releases; of pytest-benchmark
its issue 289 (rows without stats); of Bencher its format's two versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import UserError
from scheduler.results.points import importer
from scheduler.results.points.model import MAX_POINTS, ImportContext, Points

FILES = Path(__file__).parent / "files"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
SAID = ImportContext(now=NOW, device="AMD EPYC", revision="abc")
ALONE = ImportContext(now=NOW, revision="abc")  # the file says the device
Figures = dict[tuple[str, str], tuple[float, int]]


def figures(found: Points) -> Figures:
    return {
        (one.series.problem, one.series.metric): (round(one.value, 6), one.n)
        for one in found.points
    }


def reasons(found: Points) -> list[str]:
    return [f"{one.where}: {one.reason}" for one in found.left_out]


def read(content: Any, context: ImportContext = SAID) -> Points:
    return importer.read(json.dumps(content).encode(), context)


def times(name: str, time: float, cpu_time: float, n: int = 1, mean: str = "") -> Figures:
    return {(name, f"time{mean}"): (time, n), (name, f"cpu_time{mean}"): (cpu_time, n)}


FAILED = "stats: missing: the benchmark may have failed"
COMPLEXITY = "a complexity coefficient ({}), not a time"
STORED: dict[str, tuple[Figures, list[str]]] = {
    "bmf_empty_measures.json": (
        {("tests::a", "time"): (1.0, 1)},
        ["tests::b: no measures"],
    ),
    "bmf_v1_params.json": (
        {("tests::a size=16", "time"): (1.0, 1), ("tests::a size=32", "time"): (2.0, 1)},
        [],
    ),
    "gb_counters.json": (
        times("Gemm/1024", 10_000, 10_000)
        | {
            ("Gemm/1024", "GFLOPS"): (812.5, 1),
            ("Gemm/1024", "bytes_per_second"): (1e9, 1),
            ("Gemm/1024", "occupancy"): (0.5, 1),
        },
        [],
    ),
    "gb_labels.json": (
        times("Gemm fp16", 10_000, 10_000) | times("Gemm fp32", 30_000, 30_000),
        [],
    ),
    "gb_mean_only_beside_good.json": (
        times("Copy", 3_000, 3_000) | times("Gemm/1024", 11_000, 11_000, 3, "_mean"),
        [],
    ),
    "gb_nan_cv.json": (
        times("Gemm/1024", 11_000, 11_000, 3) | {("Gemm/1024", "misses"): (0, 3)},
        [],
    ),
    "gb_old_bigo.json": (
        times("Sort/8", 100, 99) | times("Sort/64", 900, 899),
        [
            f"benchmarks[2]: Sort_BigO: {COMPLEXITY.format('BigO')}",
            f"benchmarks[3]: Sort_RMS: {COMPLEXITY.format('RMS')}",
        ],
    ),
    "gb_old_date.json": (times("Copy/8", 100, 99), []),
    "pb_nan_extra.json": ({("t.py::test_b", "time"): (1.4e6, 5)}, []),
    "pb_stats_null.json": (
        {("t.py::test_a", "time"): (1.4e6, 5)},
        [f"benchmarks[1]: t.py::test_b: {FAILED}", f"benchmarks[2]: t.py::test_c: {FAILED}"],
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_an_odd_file_is_stored_but_for_what_has_no_figure(name: str) -> None:
    found = importer.read((FILES / "odd" / name).read_bytes(), SAID)
    assert (figures(found), reasons(found)) == STORED[name]


def test_a_name_too_long_to_keep_is_left_out_and_the_others_stay() -> None:
    found = importer.read((FILES / "odd/pb_long_id.json").read_bytes(), SAID)
    assert list(figures(found)) == [("t.py::test_b", "time")]
    (reason,) = reasons(found)
    assert reason.startswith("benchmarks[0]: tests/kernels/test_gemm.py::TestGemm")
    assert reason.endswith("fullname: more than 500 characters")


def test_text_around_the_document_is_named() -> None:
    document = (FILES / "google_benchmark.json").read_text()
    warning = "***WARNING*** CPU scaling is enabled"
    for text, line in (
        ((FILES / "odd/gb_warning_line.json").read_text(), "line 1: text before the JSON"),
        (f"{warning}\n[W1] 2 CPUs\n{document}", "begins on line 3: '***WARNING*** CPU scaling"),
        (f"{warning} {{\n{document}", "begins on line 2: '***WARNING***"),
        (f"2026-11-20T14:02:11+00:00\nRunning ./a\n{document}", "begins on line 3: '2026-11-20"),
        (f"{document}\n3 tests passed\n", f"line {document.count(chr(10)) + 2}: text after"),
        (f"{warning}\n{document[:-9]}", "invalid JSON"),
    ):
        with pytest.raises(UserError) as refused:
            importer.read(text.encode(), SAID)
        assert line in str(refused.value)


# ---- Google Benchmark


def run(name: str, **more: Any) -> dict[str, Any]:
    given = {"name": name, "run_name": name, "run_type": "iteration", "repetition_index": 0}
    return given | {"real_time": 10.0, "cpu_time": 9.0, "time_unit": "ns"} | more


def aggregate(name: str, kind: str, **more: Any) -> dict[str, Any]:
    made = run(f"{name}_{kind}", run_name=name, run_type="aggregate", aggregate_name=kind)
    return {key: value for key, value in made.items() if key != "repetition_index"} | more


def old(name: str, time: float) -> dict[str, Any]:
    return {"name": name, "iterations": 5, "real_time": time, "cpu_time": time, "time_unit": "ns"}


def google(*rows: Any, **context: Any) -> dict[str, Any]:
    return {"context": {"host_name": "box"} | context, "benchmarks": list(rows)}


def test_rows_of_one_name_are_told_apart_by_their_labels() -> None:
    both = [
        run("Gemm", label=label, repetition_index=n, real_time=time + n)
        for label, time in (("fp16", 10.0), ("fp32", 30.0))
        for n in range(3)
    ]
    found = read(google(*both, aggregate("Gemm", "median", label="fp16", real_time=11.0)))
    assert figures(found) == times("Gemm fp16", 11, 9, 3) | times("Gemm fp32", 31, 9, 3)
    medians = [aggregate("Gemm", "median", label=label, repetitions=3) for label in ("a", "b")]
    found = read(google(*medians))
    assert figures(found) == times("Gemm a", 10, 9, 3) | times("Gemm b", 10, 9, 3)


def test_a_label_that_says_what_came_of_each_repetition_tells_nothing_apart() -> None:
    rows = [
        run("Hash", label=f"{n} hits", repetition_index=n, real_time=10.0 + n) for n in range(3)
    ]
    assert figures(read(google(*rows))) == times("Hash", 11, 9, 3)


def test_two_benchmarks_of_one_name_and_label_are_left_out() -> None:
    found = read(google(run("Gemm"), run("Copy"), run("Gemm", real_time=30.0)))
    assert figures(found) == times("Copy", 10, 9)
    why = "this name and label occur more than once in the file"
    assert reasons(found) == [f"benchmarks[{n}]: Gemm: {why}" for n in (0, 2)]


def test_aggregates_of_old_versions_are_none_of_their_benchmarks_runs() -> None:
    kinds = [old(f"Sort_{kind}", 20.0) for kind in ("mean", "median", "stddev")]
    found = read(google(old("Sort", 10.0), old("Sort", 30.0), *kinds, old("Find_mean", 5.0)))
    assert figures(found) == times("Sort", 20, 20, 2) | times("Find_mean", 5, 5)
    assert figures(read(google(*kinds))) == times("Sort", 20, 20)
    assert figures(read(google(kinds[0], kinds[2]))) == times("Sort", 20, 20, 1, "_mean")


def test_aggregates_that_hold_no_figure_are_left_out_by_name() -> None:
    found = read(google(aggregate("Sort", "stddev"), aggregate("Sort", "BigO"), run("Copy")))
    assert figures(found) == times("Copy", 10, 9)
    assert reasons(found) == [
        f"benchmarks[1]: Sort: {COMPLEXITY.format('BigO')}",
        "benchmarks[0]: Sort: stddev: no repetitions, median or mean in the file",
    ]


def test_what_is_not_finite_costs_what_it_is_of_and_no_more() -> None:
    infinite = float("inf")
    rows = [
        run("A", repetition_index=0, misses=float("nan")),
        run("A", repetition_index=1, real_time=infinite),
        run("A", repetition_index=2, cpu_time=-infinite, real_time=20.0, misses=4),
        aggregate("A", "cv", misses=float("nan"), real_time=float("nan")),
    ]
    found = read(google(*rows, load_avg=[float("nan")]))
    assert figures(found) == {
        ("A", "time"): (15.0, 2),
        ("A", "cpu_time"): (9.0, 1),
        ("A", "misses"): (4.0, 1),
    }
    assert reasons(found) == [
        "benchmarks[0]: A: misses: must be finite",
        "benchmarks[1]: A: real_time: must be finite",
        "benchmarks[2]: A: cpu_time: must be finite",
    ]


@pytest.mark.parametrize(
    "printed", ["nan", "-nan", "inf", "-inf", "-nan(ind)", "1.#INF", "-1.#IND00"]
)
def test_numbers_as_cs_library_prints_them_are_not_finite(printed: str) -> None:
    text = json.dumps(google(run('"nan, inf": nan,', misses="X"), run("B", misses=3)))
    found = importer.read(text.replace('"X"', printed).encode(), SAID)
    names = times('"nan, inf": nan,', 10, 9) | times("B", 10, 9)
    assert figures(found) == names | {("B", "misses"): (3.0, 1)}
    (reason,) = reasons(found)
    assert reason.endswith("misses: must be finite")


def test_more_of_a_rate_is_better() -> None:
    rates = ("TFLOPS", "GB/s", "rows_per_second", "TOPS", "read_ops")
    counters = dict.fromkeys((*rates, "misses", "loops"), 1)
    found = read(google(run("A", **counters)))
    better = {one.series.metric: one.better for one in found.points}
    assert [name for name in counters if better[name] == "higher"] == list(rates)


# ---- pytest-benchmark


def suite_of(*rows: Any, **machine: Any) -> dict[str, Any]:
    info = {"node": "box", "machine": "x86_64", "processor": "x86_64"} | machine
    return {"machine_info": info, "benchmarks": list(rows)}


def row(name: str, **stats: Any) -> dict[str, Any]:
    return {"name": name, "fullname": f"t.py::{name}", "stats": {"median": 1e-6} | stats}


CPUS: list[tuple[dict[str, Any], str]] = [
    ({"cpu": {"brand_raw": "AMD EPYC 9654"}}, "AMD EPYC 9654"),
    ({"cpu": {"brand": "AMD EPYC 9654"}}, "AMD EPYC 9654"),
    ({"cpu": {"arch_string_raw": "aarch64", "hardware_raw": "BCM2711"}}, "BCM2711"),
    ({"cpu": {"hardware": "BCM2835"}}, "BCM2835"),
    ({"processor": "Intel64 Family 6 Model 158"}, "Intel64 Family 6 Model 158"),
    ({"processor": "arm", "machine": "arm64"}, "box"),
    ({"cpu": {"arch": "ARM_8", "count": 4}}, "box"),
    ({"cpu": None, "node": "box-2"}, "box-2"),
]


@pytest.mark.parametrize(("machine", "device"), CPUS)
def test_the_device_is_the_processors_name_in_every_version(
    machine: dict[str, Any], device: str
) -> None:
    (point,) = read(suite_of(row("a"), **machine), ALONE).points
    assert point.series.device == device


def test_an_architecture_is_no_device() -> None:
    with pytest.raises(UserError, match=r"^device: missing in the file"):
        read(suite_of(row("a"), node=""), ALONE)


def test_fields_that_are_not_read_may_hold_anything() -> None:
    odd = row("a", ops=float("inf"), mean=float("nan"), stddev=None, rounds=3)
    assert figures(read(suite_of(odd | {"extra_info": {"x": float("nan")}}))) == {
        ("t.py::a", "time"): (1000.0, 3)
    }


def test_one_name_twice_is_left_out_and_the_others_stay() -> None:
    found = read(suite_of(row("a"), row("b"), row("a", median=2e-6)))
    assert list(figures(found)) == [("t.py::b", "time")]
    why = "t.py::a: occurs more than once in the file"
    assert reasons(found) == [f"benchmarks[{n}]: {why}" for n in (0, 2)]


# ---- Bencher


def test_values_of_a_measure_by_other_names_are_metrics_of_their_own() -> None:
    """As version 1 defines it: entries of one set of parameters are one, the later value counts."""
    latency: list[dict[str, Any]] = [
        {"parameters": {"op": "read", "size": 16}, "measures": {"latency": {"p99": 9, "value": 3}}},
        {"parameters": {"size": 16.0, "op": "read"}, "measures": {"latency": {"value": 4}}},
        {"measures": {"throughput": {"value": 7}}},
        {"parameters": {}, "measures": {"mine": {"p50": 1}}},
    ]
    found = read({"a": latency})
    assert figures(found) == {
        ('a op="read" size=16', "time"): (4.0, 1),
        ('a op="read" size=16', "time_p99"): (9.0, 1),
        ("a", "throughput"): (7.0, 1),
        ("a", "mine_p50"): (1.0, 1),
    }


def test_a_benchmark_that_is_none_is_left_out() -> None:
    good = {"latency": {"value": 1}}
    wrong: dict[str, Any] = {
        "b": {"latency": {"value": "1"}},
        "c": 5,
        "d": [],
        "e": [{"measures": {}}],
        "f": [{"measures": good, "parameters": {"x": [1]}}],
        "g": {"latency": {"value": 2, "upper_value": 1}},
        "h": {"latency": {"valeu": 2}},
        "i": {"latency": {"value": -1}},
        "": good,
    }
    found = read({"a": good} | wrong)
    assert list(figures(found)) == [("a", "time")]
    said = reasons(found)
    assert len(said) == len(wrong)
    named = [line.startswith(name or '""') for line, name in zip(said, wrong, strict=True)]
    assert all(named), said


# ---- all of them


WRONG: list[tuple[str, tuple[Any, ...], Any, str]] = [
    ("pytest_benchmark.json", ("benchmarks", 0, "stats", "data", 3), 1e308, "benchmarks[0]: test"),
    ("pytest_benchmark.json", ("benchmarks", 1, "stats"), [], "benchmarks[1]: test_sum.py"),
    ("pytest_benchmark.json", ("benchmarks", 2, "stats", "rounds"), 2**31, "benchmarks[2]: test"),
    ("google_benchmark.json", ("benchmarks", 5, "repetitions"), 2**31, "benchmarks[5]: BM_trans"),
    ("pytest_benchmark.json", ("benchmarks", 2), 7, "benchmarks[2]: expected a JSON object"),
    ("google_benchmark.json", ("benchmarks", 6, "time_unit"), "h", "benchmarks[6]: BM_fft/4096"),
    ("google_benchmark.json", ("benchmarks", 6, "real_time"), 0, "benchmarks[6]: BM_fft/4096"),
    ("google_benchmark.json", ("benchmarks", 0, "real_time"), 1e308, "benchmarks[0]: BM_saxpy"),
    ("google_benchmark.json", ("benchmarks", 0, "cpu_time"), "1", "benchmarks[0]: BM_saxpy"),
    ("google_benchmark.json", ("benchmarks", 0, "label"), {"a": 1}, "benchmarks[0]: BM_saxpy"),
    ("google_benchmark.json", ("benchmarks", 0, "repetition_index"), [0], "benchmarks[0]: BM_s"),
    ("google_benchmark.json", ("benchmarks", 6, "run_name"), ["x"], "benchmarks[6]"),
    ("bencher.json", ("bench_matmul", "latency", "value"), 90, "bench_matmul.latency: upper_v"),
]


@pytest.mark.parametrize(("name", "path", "value", "line"), WRONG)
def test_a_row_that_is_wrong_is_left_out_by_name(
    name: str, path: tuple[Any, ...], value: Any, line: str
) -> None:
    content = json.loads((FILES / name).read_text())
    whole = read(content)
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    found = read(content)
    assert any(one.startswith(line) for one in reasons(found)), reasons(found)
    # A series that had only that row is gone, one that had others has a repetition less.
    lost = [key for key, figure in figures(whole).items() if figures(found).get(key) != figure]
    assert len(lost) <= 3
    assert set(figures(found)) <= set(figures(whole))


def test_what_is_wrong_in_all_of_a_file_is_refused_with_its_field() -> None:
    for content, line in (
        (suite_of(row("a")) | {"machine_info": "a host"}, "machine_info: expected a JSON object"),
        (suite_of(row("a")) | {"benchmarks": {}}, "benchmarks: expected a JSON array"),
        (google(run("A"), date="yesterday"), "context.date: 'yesterday' is not a time"),
        (google(), "benchmarks: no benchmarks"),
        (google(run("A", real_time=None), run("B", real_time="1")), "benchmarks[0]: A: real_time"),
    ):
        with pytest.raises(UserError) as refused:
            read(content)
        assert str(refused.value).startswith(line)
    assert str(refused.value).endswith("(and 1 more)")


DOUBLED: list[tuple[Callable[[str], str], str]] = [
    (lambda text: f'{{"context": {{}}, "benchmarks": [{text}]}}', "benchmarks[0]: A"),
    (lambda text: f'{{"a": {{"latency": {text}}}}}', "a.latency"),
]


@pytest.mark.parametrize(("around", "where"), DOUBLED)
def test_a_field_that_stands_twice_has_no_value(around: Callable[[str], str], where: str) -> None:
    """A counter of Google Benchmark's may be called like a field; JSON's readers take the last."""
    twice = '{"name": "A", "real_time": 10, "value": 1, "real_time": 30, "value": 3}'
    with pytest.raises(UserError, match="occurs more than once") as refused:
        importer.read(around(twice).encode(), SAID)
    assert str(refused.value).startswith(where)


def test_a_benchmark_of_benchers_that_stands_twice_is_left_out() -> None:
    one = '{"latency": {"value": %d}}'
    text = f'{{"a": {one % 1}, "b": {one % 2}, "a": {one % 3}}}'
    found = importer.read(text.encode(), SAID)
    assert (figures(found), reasons(found)) == (
        {("b", "time"): (2.0, 1)},
        ["a: occurs more than once in the file"],
    )


def test_names_that_no_page_can_show_are_spelled_out() -> None:
    """What is left out is stored with the batch, as PostgreSQL's JSON."""
    failed = run("A", error_occurred=True, error_message="no\0\ud800 f8\n")
    found = read(google(failed, run("C\0\n"), run("B")))
    assert reasons(found) == [
        r"benchmarks[0]: A: no\x00\ud800 f8\n",
        r"benchmarks[1]: C\x00\n: name: must not contain NUL or unpaired surrogates",
    ]


def test_files_of_nothing_but_wrong_rows_have_a_limit() -> None:
    with pytest.raises(UserError, match=f"more than {MAX_POINTS} points") as refused:
        read(google(*[{}] * (MAX_POINTS + 1)))
    line = str(refused.value)
    assert line.startswith(f"benchmarks[{MAX_POINTS}]: ")
    assert f"({MAX_POINTS} left out, first benchmarks[0]: name: expected a string)" in line


def test_a_series_does_not_depend_on_the_order_of_a_file() -> None:
    names = ["gb_labels.json", "gb_old_bigo.json", "gb_mean_only_beside_good.json"]
    for name in names:
        content = json.loads((FILES / "odd" / name).read_text())
        orders = []
        for turn in range(len(content["benchmarks"])):
            turned = content["benchmarks"][turn:] + content["benchmarks"][:turn]
            orders.append(figures(read(content | {"benchmarks": turned})))
        assert all(one == other for one, other in pairwise(orders))
