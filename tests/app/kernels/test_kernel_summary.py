"""The first screen of a kernel's page: what it is, what limits it, why it was selected; and what
the page weighs."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, TypeVar

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.models.build import ELSEWHERE
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.platform import artifacts
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.tuning.queries.kernel_choice import kernel_choice
from codegen_app.tuning.queries.serving import toolchain_of
from codegen_app.web.forms.query import KERNEL_TABS
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db

Row = TypeVar("Row", bound=Model)

MAX_BYTES, MAX_ELEMENTS = 300_000, 6_000


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def measured(world: World, kernel: GeneratedKernel, median_ns: float) -> BenchmarkResult:
    """A result on one MI300X, whichever kernel it is of."""
    environment = Environment.objects.filter(device_name="AMD Instinct MI300X").first()
    compiled = world.kernels[0].builds.get(target="gfx942")
    toolchain = {"toolchain": compiled.toolchain, "toolchain_version": compiled.toolchain_version}
    build = kernel.builds.filter(target="gfx942").first()
    return factories.result(
        build or factories.done_build(kernel=kernel, target="gfx942", **toolchain),
        median_ns,
        problem=world.nodes[0].problem,
        environment=environment or factories.environment(device_name="AMD Instinct MI300X"),
        bindings={"s0": 16},
    )


def select(result: BenchmarkResult) -> Selection:
    return Selection.objects.create(
        problem=result.problem,
        target="gfx942",
        device_name=result.environment.device_name,
        toolchain=toolchain_of(result.build),
        bindings=result.bindings,
        kernel=result.kernel,
        result=result,
        reason="fastest in run 7",
        since=timezone.now(),
    )


def copy_of(row: Row, **fields: Any) -> Row:
    """A new row with these other fields."""
    new = type(row).objects.get(pk=row.pk)  # type: ignore[attr-defined]
    for name, value in {"pk": None, **fields}.items():
        setattr(new, name, value)
    new.save()
    return new


def recorded_build(kernel: GeneratedKernel) -> Build:
    """A build of another installation, as an import of results records it."""
    resources = {
        f"{kernel.name}_tiles": {
            "limiter": "registers",
            **{"threads": 128, "registers": 92, "shared_bytes": 17408, "barriers": 1},
            **{"occupancy_warps_per_sm": 20, "occupancy_blocks_per_sm": 5, "stack_bytes": 0},
            **{"spill_store_bytes": 0, "spill_load_bytes": 0, "code_bytes": 4096},
        }
    }
    return factories.build(
        kernel=kernel, target="sm_90", state=State.CANCELLED, reason=ELSEWHERE, resources=resources
    )


def test_the_head_names_the_node_the_models_line_and_what_limits_the_kernel(
    reader: Client, world: World
) -> None:
    kernel = world.kernels[0]
    select(measured(world, kernel, 10_000.0))
    page = kernel_page(kernel.name, None, None)
    assert page.use is not None
    assert page.point is not None
    words = words_of(reader.get(page.url).content.decode())
    assert f"Node {page.use.node} {page.use.op} in {page.use.graph}" in words
    for line in page.use.model_lines[:2]:
        assert f"{line.code} {line.file.rpartition('/')[2]}:{line.line} in {line.function}" in words
    assert page.use.model_lines
    share = page.point.least_ns / 10_000.0  # type: ignore[operator]
    assert page.point.roofline == pytest.approx(share)
    assert f"{100 * share:.1f}% of the roofline" in words
    row = page.main_resources
    assert row is not None
    assert f"Occupancy {row.waves} of {row.max_waves} waves per SIMD" in words
    assert all(f"{name} {value}" in words for name, value in kernel.config.items())


def test_it_says_why_it_was_selected_and_what_came_second(reader: Client, world: World) -> None:
    kernel, other = world.kernels[:2]
    select(measured(world, kernel, 10_000.0))
    assert "Second" not in words_of(reader.get(kernel.get_absolute_url()).content.decode())
    slower = measured(world, other, 12_500.0)
    words = words_of(reader.get(kernel.get_absolute_url()).content.decode())
    assert "selected on AMD Instinct MI300X: fastest in run 7" in words
    assert f"Second of 2: {other.name} 12.50 µs" in words
    choice = kernel_choice(other, slower)
    assert not choice.is_selected
    assert choice.preferred is not None
    assert (choice.preferred.kernel, choice.preferred.change_text) == (kernel.name, "20.0% faster")
    names = {name for name, _, _ in choice.preferred.differences}
    assert names == {
        name for name, value in other.config.items() if kernel.config.get(name) != value
    }
    page = words_of(reader.get(other.get_absolute_url()).content.decode())
    assert f"Not selected on AMD Instinct MI300X. Selected: {kernel.name} 10.00 µs" in page


def test_a_kernel_of_another_language_has_the_latest_selection(world: World) -> None:
    """It has one time, whichever compiler of the target's own language the selection is for."""
    old, kernel = world.kernels[:2]
    GeneratedKernel.objects.filter(pk=kernel.pk).update(source_file="source.py")
    kernel.refresh_from_db()
    earlier = select(measured(world, old, 12_500.0))
    Selection.objects.filter(pk=earlier.pk).update(toolchain="clang 1.0")
    result = measured(world, kernel, 10_000.0)
    select(result)
    choice = kernel_choice(kernel, result)
    assert choice.is_selected
    assert choice.place == f"AMD Instinct MI300X with {toolchain_of(result.build)}"
    Selection.objects.filter(pk=earlier.pk).update(since=timezone.now())
    assert not kernel_choice(kernel, result).is_selected


def test_the_headline_is_the_time_for_the_node_that_one_came_from(world: World) -> None:
    kernel, (first, *_) = world.kernels[0], world.nodes
    assert first.problem is not None
    problem = copy_of(first.problem, digest="e" * 64)
    second = copy_of(first, problem=problem, name="op1", position=first.position + 1)
    KernelUse.objects.create(kernel=kernel, template_node=second, position=99)
    measured(world, kernel, 10_000.0)
    latest = measured(world, kernel, 30_000.0)
    BenchmarkResult.objects.filter(pk=latest.pk).update(problem=problem)
    for node, median_ns in ((first, 10_000.0), (second, 30_000.0)):
        page = kernel_page(kernel.name, None, node.pk)
        assert page.counting is not None
        assert page.counting.median_ns == median_ns


def test_equal_times_are_called_noise(world: World) -> None:
    kernel, other = world.kernels[:2]
    result = measured(world, kernel, 10_000.0)
    measured(world, other, 10_000.0)
    choice = kernel_choice(kernel, result)
    assert choice.next is not None
    assert choice.next.overlaps
    assert choice.reason == "", "nothing is selected there"


def test_a_build_of_another_machine_leads_with_its_figures_and_can_be_made_here(
    tuner: Client, world: World
) -> None:
    kernel = world.kernels[0]
    recorded = recorded_build(kernel)
    address = f"{kernel.get_absolute_url()}?build={recorded.pk}"
    words = words_of(tuner.get(address).content.decode())
    assert "its figures were imported" in words
    assert "Occupancy 20 of 64 warps per SM, limited by registers" in words
    assert "Build for sm_90 here" in words
    form = {"target": "sm_90", "flags": ""}
    answer = tuner.post(reverse("build_kernel", args=[kernel.name]), form)
    assert answer.status_code == 302
    assert Build.objects.filter(kernel=kernel, target="sm_90", state=State.QUEUED).count() == 1


def test_it_opens_on_the_target_that_one_came_from(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    for target in ("gfx942", "gfx1100"):
        data = reader.get(f"{kernel.get_absolute_url()}.json?target={target}").json()
        assert data["build"]["target"] == target
        assert data["missing_target"] == ""
    page = reader.get(f"{kernel.get_absolute_url()}?target=gfx90a").content.decode()
    assert "This kernel has no build for gfx90a." in words_of(page)


@pytest.mark.parametrize("tab", KERNEL_TABS)
def test_each_section_has_an_address_and_comes_alone_to_a_script(
    reader: Client, world: World, tab: str
) -> None:
    address = world.kernels[0].get_absolute_url()
    page = reader.get(f"{address}?tab={tab}").content.decode()
    current = re.search(r'<nav class="tabs" aria-label="Details".*?</nav>', page, re.DOTALL)
    assert current is not None
    assert re.search(rf'href="[^"]*tab={tab}#tabs"[^>]*aria-current="page"', current[0])
    query = {"tab": tab, "part": "tab"}
    part = reader.get(address, query, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div id="tab">')
    assert "part=tab#" not in part, "its links are the page's"
    section = page[page.index('<div id="tab">') :]
    titles = re.compile("<h[23][^>]*>([^<]*)")
    assert titles.findall(part) == titles.findall(section.split("<footer")[0])


def test_a_large_kernel_weighs_little_and_all_its_lines_can_be_had(
    reader: Client, world: World
) -> None:
    """Twenty thousand instructions and a source of seven hundred lines."""
    kernel = world.kernels[0]
    build = kernel.builds.get(target="gfx942")
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    at = text.index("\ts_endpgm")
    many = "".join(f"\tv_add_f32_e32 v1, v{n % 90}, v1\n" for n in range(20_000))
    build.listing = artifacts.store(f"{text[:at]}{many}{text[at:]}".encode(), ".s")
    build.save()
    kernel.source += "".join(f"// float term{n} = acc * x[{n}] + {n}.5f;\n" for n in range(700))
    kernel.save()
    html = reader.get(kernel.get_absolute_url(), {"build": build.pk}).content.decode()
    assert len(html.encode()) < MAX_BYTES
    assert len(re.findall("<[a-z]", html)) < MAX_ELEMENTS
    listed = {int(number) for number in re.findall(r'id="I(\d+)"', html)}
    for first in map(int, re.findall(r'data-later="(\d+)"', html)):
        assert first not in listed
        if first % 5_000 == 1:
            lines = reverse("kernel_lines", args=[kernel.name, build.pk, first])
            assert f'id="I{first}"' in reader.get(lines).content.decode()
    index = reader.get(reverse("kernel_index", args=[kernel.name, build.pk])).json()
    page = kernel_page(kernel.name, build.pk, None)
    assert page.listing is not None
    assert index["source"] == [line.source for line in page.listing.lines]


def test_links_to_a_kernel_name_the_target_that_a_time_is_of(reader: Client, world: World) -> None:
    kernel, node = world.kernels[0], world.nodes[0]
    select(measured(world, kernel, 10_000.0))
    for address in (
        f"{world.graph.get_absolute_url()}?view=nodes",
        world.graph.get_absolute_url(),
        node.get_absolute_url(),
        "/",
    ):
        page = unescape(reader.get(address).content.decode())
        links = re.findall(rf'href="({kernel.get_absolute_url()}\?[^"]*)"', page)
        named = [link for link in links if f"node={node.pk}&target=gfx942" in link]
        assert named, address
        assert all(link.count("?") == 1 for link in links), address
