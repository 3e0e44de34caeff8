"""Shape buckets: which kernel serves a size, in the manifest, the wrapper, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scheduler.samples
from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.bundle import reader
from scheduler.bundle.manifest import ChosenBy, Manifest
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import CallVariant, KernelCall
from scheduler.codegen.title import title
from scheduler.commands.main import main
from scheduler.errors import UserError
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.operations import GroupKind
from scheduler.results import file as results_file
from scheduler.targets import find
from scheduler.tuning.buckets import parse_buckets, unique_problems
from scheduler.tuning.ledger import read_jsonl
from scheduler.tuning.problems import find_problems

SCHEMA = Path(reader.__file__).with_name("schema.json")
LLAMA = Path(scheduler.samples.__file__).parent / "graphs" / "llama_2layer.pt2"
SYMBOLS = {"s0": SymbolInfo("s0", 128, 2, 1024), "s1": SymbolInfo("s1", 8, 1, 16)}
USUAL = {"s0": 128, "s1": 8}


def test_buckets_are_in_order_and_each_once() -> None:
    found = parse_buckets(["s0=64", "s0=4", "s0=64"], SYMBOLS, USUAL)
    assert [(one.at_most, one.bindings) for one in found] == [
        (4, {"s0": 4, "s1": 8}),
        (64, {"s0": 64, "s1": 8}),
    ]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["s9=4"], "s9"),
        (["s0=1"], "range"),
        (["s0=128"], "not below"),
        (["s0=4", "s1=4"], "one symbol"),
        (["s0"], "SYMBOL=NUMBER"),
    ],
)
def test_buckets_that_cannot_be_are_a_users_mistake(texts: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_buckets(texts, SYMBOLS, USUAL)


@given(st.lists(st.integers(1, 50), unique=True), st.integers(1, 60))
def test_the_first_bucket_that_fits_serves(limits: list[int], size: int) -> None:
    limits = sorted(limits)
    variants = tuple(CallVariant("s0", limit, f"upto{limit}", {}) for limit in limits)
    call = KernelCall("largest", {}, ("mm",), variants).select_variant({"s0": size})
    fits = [limit for limit in limits if size <= limit]
    assert call.kernel == (f"upto{fits[0]}" if fits else "largest")
    assert call.nodes == ("mm",)
    assert not call.variants


def test_kernels_that_serve_all_sizes_are_called_without_a_question() -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(LLAMA)))
    target = find("gfx942")
    backend = pipeline.scheduling(plan, (target,))
    name = next(node.name for node in plan.nodes if node.kind is GroupKind.POINTWISE)

    def choose(threads: int) -> pipeline.Chooser:
        def chosen(node: SchedulerNode) -> TemplateCaller | None:
            if node.name != name:
                return None
            return backend.template(node).generate({"threads": threads, "vector": 1})

        return chosen

    sizes = [("s70", limit, choose(threads)) for limit, threads in ((4, 128), (8, 128), (16, 512))]
    generated = pipeline.generate(plan, (target,), choose(512), sizes)
    changed = [call for call in generated.calls if call.variants]
    assert len(changed) == 1
    assert [one.at_most for one in changed[0].variants] == [8]  # 4 joins it; 16 is as the rest
    manifest = generated.manifest()
    again = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    assert again.calls == manifest.calls
    text = wrapper_of(manifest)
    assert "    if s70 <= 8:\n        run.kernel(" in text
    compile(text, "wrapper.py", "exec")


def test_a_choice_that_could_not_be_kept_is_reported_at_its_sizes() -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(LLAMA)))
    target = find("gfx942")
    name = next(node.name for node in plan.nodes if node.kind is GroupKind.POINTWISE)

    def old(node: SchedulerNode) -> pipeline.NotGenerated | None:
        return pipeline.NotGenerated("rocm_old") if node.name == name else None

    sizes = [("s70", 4, old), ("s70", 8, lambda _: None)]
    by = ChosenBy("AMD Instinct MI300X", "gfx942", "rocm 7.0", {"s70": 16})
    manifest = pipeline.generate(plan, (target,), lambda _: None, sizes, by).manifest()
    data = json.loads(json.dumps(manifest.to_json()))
    assert Manifest.from_json(data) == manifest
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    (call,) = [call for call in data["calls"] if "variants" in call]
    assert call["choice"] == {"source": "default"}
    choices = [(one["at_most"], one["choice"]) for one in call["variants"]]
    assert choices == [(4, {"source": "default", "not_made": "rocm_old"})]
    text = wrapper_of(manifest)
    comment = "        # the default: the selected kernel rocm_old is not generated by this version"
    assert f"    if s70 <= 4:\n{comment}" in text
    compile(text, "wrapper.py", "exec")


def test_problems_that_do_not_depend_on_the_size_are_tuned_once() -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(LLAMA)))
    target = find("cpu")
    backend = pipeline.scheduling(plan, (target,))
    usual = hint_bindings(plan.lowered.graph.symbols)
    pointwise = [node.name for node in plan.nodes if node.kind is GroupKind.POINTWISE]
    first = find_problems(plan, backend, target, usual, pointwise)
    other = find_problems(plan, backend, target, {**usual, "s70": 16}, pointwise)
    assert unique_problems([*first, *first]) == first
    assert unique_problems([*first, *other]) == (*first, *other)
    at = {**usual, "s70": 16}
    assert other[0].title == f"{title(other[0].node, plan.lowered, at)} at s70=16"
    assert other[0].title != f"{first[0].title} at s70=16", "the sizes are those that are measured"


@pytest.mark.long
def test_the_command_tunes_each_bucket_and_its_bundle_is_right_at_all_sizes(
    cache: CodeCache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bundle"
    arguments = ["tune", str(LLAMA), "--bind", "s70=16", "--bucket", "s70=3", "--node", "op4"]
    limits = ["--budget", "60s", "--cache", str(cache.root), "--out", str(out), "--json"]
    assert main([*arguments, *limits]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [one["problem"].endswith("at s70=3") for one in facts["problems"]] == [False, True]
    lines = read_jsonl(out / "ledger.jsonl").values()
    assert {line["bindings"]["s70"] for line in lines} == {3, 16}
    assert {line["fate"] for line in lines} == {"refused", "measured", "chosen"}
    assert (out / "autotune.log").read_text().count("AUTOTUNE add") == 2
    recorded = results_file.read(out / "results.json")
    assert [run.bindings for run in recorded.runs] == [{"s70": 16}, {"s70": 3}]
    tried = [one for run in recorded.runs for one in run.tasks[0].candidates]
    assert len(tried) == len(lines), "every line of the ledger, none twice"
    assert sum(one.chosen for one in tried) == 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["chosen_by"]["bindings"] == {"s70": 16}
    assert manifest["chosen_by"]["target"] == "cpu"
    for size in (3, 4):  # the last of the bucket, and the first beyond it
        sizes = ["--bind", f"s70={size}", "--kernels-only", "--json"]
        assert main(["verify", str(out), *sizes]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--budget", "soon"], "write a time"),
        (["--node", "nothing"], "no such kernel"),
        (["--known", "nowhere.jsonl"], "ledger"),
        (["--device", "toaster"], "unknown device 'toaster'"),
    ],
)
def test_a_users_mistake_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    out = tmp_path / "bundle"
    assert main(["tune", str(LLAMA), "--out", str(out), *more]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not out.exists()
