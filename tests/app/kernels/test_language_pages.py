"""Kernels in two languages for one node: each page says which is which, who is faster and by how
much, and why another was refused."""

from __future__ import annotations

import hashlib
import re

import pytest
from django.test import Client

from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.kernel.forms import BuildForm
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.platform import artifacts
from codegen_app.tuning.models import Candidate, TuningTask
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.pages.run.query import run_page
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.languages import TriedCandidate, language_rows
from codegen_app.tuning.services import candidate_results
from codegen_app.workers.models import State
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.build.cuda.toolchains import NAME
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.languages import CUTEDSL_SOURCE, LANGUAGES, language_of
from scheduler.targets import find, registry
from tests.app import factories
from tests.support.caches import KEPT
from tests.support.cutedsl_sources import ADD, named
from tests.support.pages_world import World, make_build

pytestmark = pytest.mark.django_db

NODE = "linear_0"
REFUSED = "nothing compiles CuteDSL here: install kiln[cutedsl]"


@pytest.fixture
def kernel(world: World) -> GeneratedKernel:
    """One in CuteDSL, a candidate of the first node that a run could not build."""
    comment = f"# Source node to ATen node mapping:\n#   {NODE} => {NODE}\n"
    name = f"cutedsl_linear_{hashlib.sha256(ADD.encode()).hexdigest()[:8]}"
    source = named(comment + ADD, name)
    made = GeneratedKernel.objects.create(
        name=name,
        source_digest=hashlib.sha256(source.encode()).hexdigest(),
        template="cutedsl_pointwise",
        config={"block": 256},
        source=source,
        source_file=CUTEDSL_SOURCE,
        launches=[
            {"function": f"{name}_kernel_0", "grid": ["n"], "block": [256], "lds_bytes": 0}
            | {"args": [], "dynamic_lds": True}
        ],
    )
    KernelUse.objects.create(
        kernel=made, template_node=world.nodes[0], position=len(world.kernels), description="block"
    )
    task = TuningTask.objects.get()
    Candidate.objects.create(
        task=task,
        position=len(world.kernels),
        kernel=made,
        build=Build.objects.create(kernel=made, target="sm_90", toolchain_digest="of none"),
        config=made.config,
        **{"state": State.REJECTED, "stage": "compile", "reason": REFUSED},
    )
    return made


@pytest.fixture
def built(kernel: GeneratedKernel) -> Build:
    sm_90 = find("sm_90")
    toolchain = pick_toolchain(
        find_target_toolchains(sm_90, Search(cache=KEPT)), sm_90, CUTEDSL_SOURCE
    )
    return make_build(kernel, "sm_90", KEPT.root, toolchain)


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_each_source_has_a_language() -> None:
    recipes = [name for one in registry.BUILT_IN for name in (one.recipe, *one.recipes)]
    files = {registry.load_part(name).source_file for name in recipes}
    assert files == set(LANGUAGES)
    assert language_of("kernel.mojo") == "mojo"


@pytest.mark.full
def test_the_kernels_page_reads_its_python(reader: Client, built: Build) -> None:
    page = kernel_page(built.kernel.name, built.pk, None)
    assert page.language == "CuteDSL"
    html = reader.get(f"{page.url}?build={built.pk}").content.decode()
    assert "Configuration CuteDSL" in words_of(html)
    assert re.search(r'<span class="kn">import</span>', html)
    assert f'node={NODE}">{NODE}</a>' in html, "the comment leads to the graph"
    assert page.listing is not None
    source = built.kernel.source.split("\n")
    loads = [line for line in page.listing.lines if line.instruction == "global"]
    assert {source[line.source - 1].strip() for line in loads} == {"out[i] = x[i] + y[i]"}
    assert page.listing.follows_registers
    ptx = kernel_page(built.kernel.name, built.pk, None, view="ptx").listing
    assert ptx is not None
    assert ptx.dialect == "ptx-listing"
    for file, artifact in (("kernel.ptx", built.intermediate), ("kernel.cubin", built.code_object)):
        answer = reader.get(f"{page.url}/{built.pk}/{file}")
        assert b"".join(answer.streaming_content) == artifacts.read(artifact)  # type: ignore[attr-defined, arg-type]


def test_it_can_be_built_where_something_builds_such_sources(
    kernel: GeneratedKernel, world: World
) -> None:
    offered = [name for name, _ in BuildForm(kernel.source_file).fields["target"].choices]  # type: ignore[attr-defined]
    assert "sm_90" in offered
    assert "gfx942" not in offered
    offered = [name for name, _ in BuildForm(world.kernels[0].source_file).fields["target"].choices]  # type: ignore[attr-defined]
    assert {"sm_90", "gfx942"} <= set(offered)


@pytest.mark.full
def test_it_is_compared_with_the_one_in_hip(reader: Client, world: World, built: Build) -> None:
    toolchain = pick_toolchain(
        find_target_toolchains(find("sm_90"), Search(cache=KEPT)), find("sm_90")
    )
    assert toolchain.name == NAME
    hip = make_build(world.kernels[0], "sm_90", KEPT.root, toolchain)
    page = compare_page([hip.pk, built.pk])
    assert [side.label.split()[0] for side in page.sides] == ["HIP", "CuteDSL"]
    assert not page.source
    (function,) = page.functions
    assert function.is_line_by_line, "both are SASS"
    html = reader.get(f"/compare?build={hip.pk}&build={built.pk}").content.decode()
    assert "The languages differ: sources are not compared line by line." in words_of(html)


def test_node_and_run_say_who_won_and_why_another_did_not_run(
    reader: Client, world: World, kernel: GeneratedKernel
) -> None:
    for address in (world.nodes[0].get_absolute_url(), world.run.get_absolute_url()):
        html = reader.get(address).content.decode()
        assert REFUSED in words_of(html)
        alone = reader.get(f"{address}?language=CuteDSL").content.decode()
        assert re.search(rf"{kernel.name}(?:</\w+>)*</a>", alone), "it leads to its page"
        table = re.search(
            r'<table class="grid" id="(?:candidates|ledger)">.*?</table>', alone, re.S
        )
        assert table
        assert world.kernels[0].name not in table[0]


def test_candidates_of_two_compilers_meet_in_one_bucket(reader: Client) -> None:
    task = factories.task()
    where = {"problem": task.problem, "task": task}
    device = factories.environment(device="cuda:0", device_name="NVIDIA H200", target="sm_90")
    hip = factories.candidate(task, build=factories.build(target="sm_90"))
    cute = factories.kernel(source_file=CUTEDSL_SOURCE, template="cutedsl_gemm")
    made = factories.build(kernel=cute, target="sm_90", toolchain="cutedsl")
    won = factories.candidate(task, build=made)
    for position, kernel in enumerate((hip.kernel, cute)):
        node = task.template_node
        KernelUse.objects.create(
            kernel=kernel, template_node=node, position=position, is_default=not position
        )
    results = [
        factories.result(one.build, median, environment=device, **where)
        for one, median in ((hip, 30_000.0), (won, 20_000.0))
    ]
    Candidate.objects.filter(pk=won.pk).update(state=State.DONE, result=results[1])
    Candidate.objects.filter(pk=hip.pk).update(state=State.DONE, result=results[0])
    candidate_results.choose(won, results[1], [])
    (bucket,) = serving.node_buckets([task.template_node]).buckets
    assert bucket.toolchain == "bundled 22"
    page = node_page(task.template_node_id)
    assert [(row.language, row.ratio, row.is_clear) for row in page.languages] == [
        ("CuteDSL", 1.0, False),
        ("HIP", 1.5, True),
    ]
    (selected,) = [row for row in page.candidates if row.selected]
    assert selected.kernel == cute.name
    graph = graph_page(task.run.graph_id)
    assert [row.serving.median_ns for row in graph.scheduled if row.serving] == [20_000.0]
    (best,) = run_page(task.run_id).best
    assert [row.language for row in best.languages] == ["CuteDSL", "HIP"]
    html = words_of(reader.get(task.run.get_absolute_url()).content.decode())
    assert "HIP 30.00 µs, range 30.00 \N{EN DASH} 30.00 , n 5: 1.50 times the fastest" in html


def test_kernels_are_listed_by_language(
    reader: Client, world: World, kernel: GeneratedKernel
) -> None:
    html = reader.get("/kernels?language=CuteDSL").content.decode()
    assert kernel.name in html
    assert world.kernels[0].name not in html
    assert "No kernel in Mojo" in words_of(reader.get("/kernels?language=Mojo").content.decode())


def test_one_language_needs_no_column(reader: Client, world: World) -> None:
    html = reader.get(world.nodes[0].get_absolute_url()).content.decode()
    assert 'id="languages"' not in html


def tried(language: str, median: float | None, spread: float = 1.0) -> TriedCandidate:
    time = Metric(median, median - spread, median + spread, "ns", 9) if median else None
    metrics = {TIME: time} if time else {}
    return TriedCandidate(language=language, kernel=f"{language} {median}", url="", metrics=metrics)


def test_the_fastest_of_each_language_is_set_against_the_fastest_of_all() -> None:
    cute, hip, other = language_rows(
        [
            *(
                (tried("HIP", 30.0), ""),
                (tried("HIP", 25.0), ""),
                (tried("HIP", None), "check: wrong"),
            ),
            (tried("CuteDSL", 20.0), ""),
            *((tried("Mojo", None), "rule: no"), (tried("Mojo", None), "rule: no")),
        ]
    )
    assert (cute.language, cute.ratio, cute.is_clear) == ("CuteDSL", 1.0, False)
    assert (hip.kernel, hip.ratio, hip.is_clear) == ("HIP 25.0", 1.25, True)
    assert (hip.tried, hip.measured, hip.reasons) == (3, 2, ("check: wrong",))
    assert (other.ratio, other.kernel, other.reasons) == (None, "", ("rule: no",))


def test_intervals_that_meet_show_no_difference() -> None:
    _, slower = language_rows([(tried("HIP", 20.0), ""), (tried("CuteDSL", 21.0), "")])
    assert slower.ratio == 1.05
    assert not slower.is_clear
