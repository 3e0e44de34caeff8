"""What serves a node: choices and times of one device model, target, compiler and sizes alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.graphs.pages.graph.query import GraphPage, graph_page
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.services import engine
from codegen_app.platform import artifacts
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.pages.selections.query import selections as chosen_everywhere
from codegen_app.tuning.queries import serving
from codegen_app.tuning.services import choices, selection_io, selections
from scheduler.errors import UserError
from tests.app import factories
from tests.support.pages_world import World, make_world

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

MI300X, MI210 = ("AMD Instinct MI300X", "gfx942"), ("AMD Instinct MI210", "gfx90a")


@pytest.fixture
def world(code_cache: Path) -> World:
    """Two nodes of two problems; the first problem has an emulated time, its default serves."""
    made = make_world(code_cache, layers=2, candidates=2, compiled=2)
    other = Problem.objects.create(
        digest=factories.digest(), kind="gemm", op="linear", summary="other", text="t",
        symbols={"s0": {"hint": 64, "min": 2, "max": None}},
    )  # fmt: skip
    TemplateNode.objects.filter(pk=made.nodes[1].pk).update(problem=other)
    made.nodes[1].refresh_from_db()
    return made


def measured(
    node: TemplateNode,
    kernel: GeneratedKernel,
    median_ns: float,
    device: tuple[str, str] = MI300X,
    version: str = "7.0",
    bindings: dict[str, int] | None = None,
) -> BenchmarkResult:
    """A time of a kernel on a GPU."""
    name, target = device
    environment = Environment.objects.filter(
        device_name=name, target=target, device="rocm:0"
    ).first() or factories.environment(device_name=name, target=target)
    build = Build.objects.filter(
        kernel=kernel, toolchain="rocm", toolchain_version=version
    ).first() or factories.build(
        kernel=kernel, target=target, toolchain="rocm", toolchain_version=version
    )
    return factories.result(
        build,
        median_ns,
        problem=node.problem,
        environment=environment,
        bindings=bindings or {"s0": 16},
    )


@transaction.atomic
def offer(result: BenchmarkResult) -> None:
    selections.offer(result, "a run")


def default(node: TemplateNode) -> GeneratedKernel:
    return node.uses.get(is_default=True).kernel


def other_kernel(node: TemplateNode) -> GeneratedKernel:
    return node.uses.get(position=1).kernel


def shown(page: GraphPage) -> list[tuple[str, float | None]]:
    return [(row.serving.kernel, row.serving.median_ns) for row in page.scheduled if row.serving]


def test_a_graphs_total_is_of_one_device(reader: Client, world: World) -> None:
    first, second = world.nodes
    measured(first, default(first), 1000.0, MI300X)
    measured(second, default(second), 50.0, MI210)  # the latest
    page = graph_page(world.graph.pk)
    assert page.bucket is not None
    assert (page.bucket.device_name, page.total_ns) == (MI210[0], 50.0)
    assert (page.measured.measured, page.measured.with_kernel) == (1, 2)
    assert page.measured.missing == {"gemm": 1}
    assert page.sum_title == "Sum of medians, 1 of 2 nodes"
    names = [bucket.name for bucket in page.buckets]
    where = [f"{name}, {arch}, rocm 7.0, s0=16" for name, arch in (MI210, MI300X)]
    assert names[:2] == where
    assert [bucket.emulated for bucket in page.buckets] == [False, False, True]
    totals = {name: graph_page(world.graph.pk, name).total_ns for name in names}
    assert list(totals.values()) == [50.0, 1000.0, 120_000.0]
    html = reader.get(page.url, {"times": names[1]}).content.decode()
    assert f'<option value="{names[1]}" selected>' in html
    assert "1 of 2" in html
    without_tags = " ".join(re.sub(r"<[^>]*>", " ", html).split())
    assert "1.000 µs" in without_tags
    assert "0.050 µs" not in without_tags


def test_a_total_has_no_times_of_another_compiler(world: World) -> None:
    first, second = world.nodes
    measured(first, default(first), 1000.0, version="6.4")
    measured(second, default(second), 50.0, version="7.0")
    totals = {b.toolchain: graph_page(world.graph.pk, b.name).total_ns for b in _gpu(world)}
    assert totals == {"rocm 6.4": 1000.0, "rocm 7.0": 50.0}


def test_a_total_has_no_times_at_other_sizes(world: World) -> None:
    first, second = world.nodes
    measured(first, default(first), 1000.0, bindings={"s0": 64})
    measured(second, default(second), 50.0, bindings={"s0": 16})
    totals = {b.bindings["s0"]: graph_page(world.graph.pk, b.name).total_ns for b in _gpu(world)}
    assert totals == {64: 1000.0, 16: 50.0}


def test_sizes_that_a_problem_does_not_use_do_not_part_its_times(world: World) -> None:
    """Another graph with the same problem has a symbol more."""
    node = world.nodes[0]
    measured(node, default(node), 1000.0, bindings={"s0": 16, "s9": 3})
    (bucket,) = _gpu(world)
    assert bucket.bindings == {"s0": 16}
    assert graph_page(world.graph.pk, bucket.name).total_ns == 1000.0


def test_each_device_shows_what_was_selected_for_it(reader: Client, world: World) -> None:
    node = world.nodes[0]
    slow = measured(node, default(node), 1000.0, MI300X)
    fast = measured(node, other_kernel(node), 400.0, MI210)
    for result in (slow, fast):
        offer(result)
    measured(node, other_kernel(node), 9000.0, MI300X)  # measured there, but not selected
    served = {b.device_name: shown(graph_page(world.graph.pk, b.name))[0] for b in _gpu(world)}
    assert served == {
        MI300X[0]: (slow.kernel.name, 1000.0),
        MI210[0]: (fast.kernel.name, 400.0),
    }
    for bucket in _gpu(world):
        page = node_page(node.pk, bucket_name=bucket.name)
        assert [row.kernel for row in page.candidates if row.selected] == [
            served[bucket.device_name][0]
        ]
        assert {row.timing.device for row in page.candidates if row.timing} == {bucket.device_name}
    html = reader.get(node.get_absolute_url()).content.decode()
    assert f"gfx90a ({MI210[0]})" in html


def test_what_serves_has_its_latest_measurement_with_an_interval(world: World) -> None:
    """The same on every page, whichever measurement it was selected by."""
    node = world.nodes[0]
    by = measured(node, default(node), 1000.0)
    offer(by)
    measured(node, default(node), 1400.0)
    hasty = measured(node, default(node), 700.0)
    BenchmarkResult.objects.filter(pk=hasty.pk).update(samples_ns=[700.0])
    assert shown(graph_page(world.graph.pk))[0] == (by.kernel.name, 1400.0)
    (row,) = (row for row in node_page(node.pk).candidates if row.selected)
    assert row.timing is not None
    assert row.timing.median_ns == 1400.0
    (choice,) = (one for one in chosen_everywhere().buckets if one.device_name == MI300X[0])
    assert choice.serving.median_ns == 1400.0
    assert row.timing.drift == choice.serving.drift
    assert choice.serving.drift is not None
    assert choice.serving.drift.ratio == 1.4


def test_a_choice_from_elsewhere_serves_without_a_time(world: World) -> None:
    node = world.nodes[0]
    old = measured(node, other_kernel(node), 1000.0, version="6.4")
    bucket = {
        "problem_id": node.problem_id,
        "target": "gfx942",
        "device_name": MI300X[0],
        "toolchain": "rocm 7.0",
        "bindings": {"s0": 16},
    }
    with transaction.atomic():
        assert selections.choose(bucket, old.kernel, "imported", None)
    assert Selection.objects.get(toolchain="rocm 7.0").result is None, "that was another compiler's"
    page = graph_page(world.graph.pk, f"{MI300X[0]}, gfx942, rocm 7.0, s0=16")
    assert page.bucket is not None
    assert page.bucket.toolchain == "rocm 7.0"
    assert shown(page)[0] == (old.kernel.name, None)


def test_a_name_that_is_no_bucket_is_reported_beside_the_field(
    reader: Client, world: World
) -> None:
    for address in (world.graph.get_absolute_url(), world.nodes[0].get_absolute_url()):
        html = reader.get(address, {"times": "a toaster"}).content.decode()
        assert "No measurements on a toaster." in html
        assert "showing CPU emulation, cpu" in html


def test_an_emulated_total_says_so(reader: Client, world: World) -> None:
    html = reader.get(world.graph.get_absolute_url()).content.decode()
    assert "CPU emulation: no GPU measurements yet" in html
    assert "tag emulated" in html


def test_smaller_sizes_are_buckets_of_the_same_device_and_compiler(world: World) -> None:
    node = world.nodes[0]
    for size in (8, 64, 16):
        measured(node, default(node), 1000.0, bindings={"s0": size})
    measured(node, default(node), 1000.0, MI210, bindings={"s0": 4})
    known = serving.node_buckets(world.nodes)
    usual = known.find(f"{MI300X[0]}, gfx942, rocm 7.0, s0=64")
    assert usual is not None
    assert [(s, size) for s, size, _ in serving.smaller_buckets(known.buckets, usual)] == [
        ("s0", 8),
        ("s0", 16),
    ]


class TestBundles:
    """Code of a real graph with what was selected for one of its nodes."""

    @pytest.fixture
    def node(self) -> TemplateNode:
        graph = factories.prepared_graph()
        nodes = graph.template_nodes.filter(op="addmm", problem__isnull=False)
        return nodes.select_related("problem", "graph__file").order_by("position")[0]

    def select(self, node: TemplateNode, place: int, size: int, **where: object) -> str:
        """Another kernel than the default, selected at a size."""
        (symbol,) = node.graph.symbols
        use = KernelUse.objects.get(template_node=node, position=place)
        result = measured(node, use.kernel, 1000.0, bindings={symbol: size}, **where)
        offer(result)
        return use.kernel.name

    @pytest.mark.full
    def test_a_bundle_has_what_serves_on_one_device(self, node: TemplateNode) -> None:
        one = self.select(node, 1, 16, device=MI300X)
        other = self.select(node, 2, 16, device=MI210)
        for bucket in serving.node_buckets([node]).buckets:
            chosen = choices.graph_choices(node.graph, bucket.name).generated()
            chosen = chosen.chosen[node.name].name
            assert chosen == (one if bucket.device_name == MI300X[0] else other)
        latest = choices.graph_choices(node.graph).generated()
        assert latest.chosen[node.name].name == other, "the latest"
        with pytest.raises(UserError, match="no measurements on 'a toaster'"):
            choices.graph_choices(node.graph, "a toaster")

    @pytest.mark.full
    def test_smaller_sizes_have_their_own_kernel(self, node: TemplateNode) -> None:
        small = self.select(node, 1, 4)
        usual = self.select(node, 2, 16)
        name = serving.node_buckets([node]).buckets[0].name
        made = choices.graph_choices(node.graph, name).generated()
        calls = [call for call in made.calls if call.kernel == usual]
        assert calls
        for call in calls:
            assert [(v.at_most, v.kernel) for v in call.variants] == [(4, small)]

    @pytest.mark.full
    def test_the_emulation_chooses_no_code(self, node: TemplateNode) -> None:
        self.select(node, 1, 16)
        BenchmarkResult.objects.update(emulated=True)
        made = choices.graph_choices(node.graph).generated()
        assert made.chosen[node.name].name == default(node).name
        assert made.manifest().chosen_by is None
        with pytest.raises(UserError, match="cannot select kernels for a GPU"):
            choices.graph_choices(node.graph, serving.node_buckets([node]).buckets[0].name)

    @pytest.mark.full
    def test_the_wrapper_tab_calls_what_serves(self, reader: Client, node: TemplateNode) -> None:
        address = f"{node.graph.get_absolute_url()}?view=wrapper"
        other = node.uses.get(position=1).kernel.name
        assert other not in reader.get(address).content.decode()
        assert self.select(node, 1, 16) == other
        assert other in reader.get(address).content.decode()

    @pytest.mark.full
    def test_one_selected_kernel_is_made_without_all_the_others(
        self, node: TemplateNode, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A node may have hundreds of candidates, and the page waits for them."""
        name = self.select(node, 1, 16)
        KernelUse.objects.update(generator="an earlier one")
        monkeypatch.setattr(engine, "callers", None)
        chosen = choices.graph_choices(node.graph)
        assert chosen.not_made() == ()
        assert name in {call.kernel for call in chosen.generated().manifest().calls}

    def old_kernel(self, node: TemplateNode, size: int = 16, version: str = "old") -> str:
        """A kernel that an earlier version of the generator made, selected at a size."""
        (symbol,) = node.graph.symbols
        kernel = factories.kernel(name=f"rocm_addmm_{version}")
        KernelUse.objects.create(kernel=kernel, template_node=node, position=900)
        offer(measured(node, kernel, 500.0, bindings={symbol: size}))
        return kernel.name

    @pytest.mark.full
    def test_a_bundle_says_whose_times_chose_and_which_kernels(self, node: TemplateNode) -> None:
        name = self.select(node, 1, 16)
        (symbol,) = node.graph.symbols
        data = choices.graph_choices(node.graph).generated().manifest().to_json()
        assert data["chosen_by"] == {
            "device_name": MI300X[0],
            "target": MI300X[1],
            "toolchain": "rocm 7.0",
            "bindings": {symbol: 16},
        }
        sources = {(call["kernel"], call["choice"]["source"]) for call in data["calls"]}
        assert {kernel for kernel, source in sources if source == "selected"} == {name}
        assert all("not_made" not in call["choice"] for call in data["calls"])

    @pytest.mark.full
    def test_a_selected_kernel_that_is_not_made_any_more_is_reported(
        self, reader: Client, node: TemplateNode
    ) -> None:
        old, used = self.old_kernel(node), default(node).name
        page = reader.get(node.graph.get_absolute_url())
        html = " ".join(re.sub(r"<[^>]*>", " ", page.content.decode()).split())
        assert f"{node.name}: {used} instead of {old}" in html
        nodes = node.graph.template_nodes
        same, all_ = (
            nodes.filter(problem=node.problem).count(),
            nodes.exclude(kind="extern").count(),
        )
        assert f"Measured nodes {same} of {all_}" in html
        assert f"Not generated {same}" in html
        assert html.count("not generated") == same, "in each row"
        twin = reader.get(f"{node.graph.get_absolute_url()}.json").json()
        line = {"node": node.name, "selected": old, "instead": used, "sizes": ""}
        assert line in twin["not_made"]
        wrapper = reader.get(node.graph.get_absolute_url(), {"view": "wrapper"})
        assert f"the selected kernel {old} is not generated" in wrapper.content.decode()

    @pytest.mark.full
    def test_what_this_generator_made_is_not_made_again_to_show_a_page(
        self, reader: Client, node: TemplateNode, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For a large model that takes seconds, in a process that serves pages."""
        name = self.select(node, 1, 16)
        made = []
        monkeypatch.setattr(engine, "find_candidate", lambda *of: made.append(of) or True)
        twin = reader.get(f"{node.graph.get_absolute_url()}.json").json()
        row = next(row for row in twin["scheduled"] if row["name"] == node.name)
        assert (row["serving"]["kernel"], twin["not_made"]) == (name, [])
        assert not made
        KernelUse.objects.update(generator="an earlier one")
        reader.get(f"{node.graph.get_absolute_url()}.json")
        assert made

    @pytest.mark.full
    def test_a_bundle_says_what_stands_in_for_a_kernel_that_is_not_made(
        self, node: TemplateNode
    ) -> None:
        old = self.old_kernel(node)
        manifest = choices.graph_choices(node.graph).generated().manifest()
        calls = [call for call in manifest.to_json()["calls"] if "not_made" in call["choice"]]
        assert calls
        for call in calls:
            assert call["kernel"] == default(node).name
            assert call["choice"] == {"source": "default", "not_made": old}

    @pytest.mark.full
    def test_a_kernel_that_is_not_made_at_smaller_sizes_is_reported(
        self, reader: Client, node: TemplateNode
    ) -> None:
        old, usual = self.old_kernel(node, 4), self.select(node, 1, 16)
        (symbol,) = node.graph.symbols
        name = next(
            b.name for b in serving.node_buckets([node]).buckets if b.bindings == {symbol: 16}
        )
        twin = reader.get(f"{node.graph.get_absolute_url()}.json", {"times": name}).json()
        assert [(one["selected"], one["sizes"]) for one in twin["not_made"]][:1] == [
            (old, f"{symbol} <= 4")
        ]
        row = next(row for row in twin["scheduled"] if row["name"] == node.name)
        assert (row["serving"]["kernel"], row["serving"]["instead"]) == (usual, "")

    @pytest.mark.full
    def test_a_default_that_stands_in_at_smaller_sizes_is_kept_in_the_bundle(
        self, node: TemplateNode
    ) -> None:
        """The same kernel serves larger sizes: that another was selected is shown all the same."""
        old = self.old_kernel(node, 4)
        offer(measured(node, default(node), 900.0, bindings={next(iter(node.graph.symbols)): 16}))
        name = next(
            b.name for b in serving.node_buckets([node]).buckets if 16 in b.bindings.values()
        )
        manifest = choices.graph_choices(node.graph, name).generated().manifest().to_json()
        variants = [one for call in manifest["calls"] for one in call.get("variants", ())]
        assert {one["choice"].get("not_made") for one in variants} == {old}

    @pytest.mark.full
    def test_a_file_that_is_gone_is_reported(self, reader: Client, node: TemplateNode) -> None:
        self.select(node, 1, 16)
        address = node.graph.get_absolute_url()
        engine.scheduled.cache_clear()
        engine.callers.cache_clear()
        engine.find_caller.cache_clear()
        artifacts.local_file(node.graph.file).unlink()
        html = reader.get(address, {"view": "wrapper"}).content.decode()
        assert "the imported file is missing from the storage" in html


def test_an_exported_choice_names_its_bucket(world: World) -> None:
    node = world.nodes[0]
    offer(measured(node, default(node), 1000.0))
    lines = [line for line in selection_io.export()["selections"] if line["target"] == "gfx942"]
    assert [(line["device_name"], line["toolchain"]) for line in lines] == [(MI300X[0], "rocm 7.0")]


def _gpu(world: World) -> list[serving.Bucket]:
    nodes = TemplateNode.objects.filter(graph=world.graph).select_related("problem")
    return [bucket for bucket in serving.node_buckets(nodes).buckets if not bucket.emulated]


def test_a_past_choice_is_no_bucket(world: World) -> None:
    Selection.objects.update(until=timezone.now(), device_name="gone")
    names = [bucket.device_name for bucket in graph_page(world.graph.pk).buckets]
    assert names == ["CPU emulation"]


def test_sides_of_a_comparison_say_where_they_were_measured(reader: Client, world: World) -> None:
    node = world.nodes[0]
    builds = [
        measured(node, default(node), 1000.0, MI300X).build_id,
        measured(node, other_kernel(node), 400.0, MI210).build_id,
    ]
    Build.objects.filter(pk__in=builds).update(
        state="done", code_digest="x", library=world.graph.file, duration_s=1
    )
    page = reader.get("/compare", {"build": builds})
    assert [
        side["device"] for side in reader.get("/compare.json", {"build": builds}).json()["sides"]
    ] == [MI300X[0], MI210[0]]
    assert "Measured on" in page.content.decode()
