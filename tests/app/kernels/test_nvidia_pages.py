"""Builds for NVIDIA's GPUs: both texts of one are kept, shown, mapped to the source, and given
away; without an assembler the page says what it shows instead."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from codegen_app.kernels.models import Build
from codegen_app.kernels.models.build import ELSEWHERE
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.kernel import codeview
from codegen_app.kernels.pages.kernel.query import KernelPage, kernel_page
from codegen_app.platform import artifacts
from codegen_app.tuning.services import bundles
from codegen_app.workers.models import State
from scheduler.build.cuda.toolchains import NAME, CudaToolchain, cuda_compilers
from scheduler.build.toolchains import Search
from tests.support.caches import KEPT
from tests.support.pages_world import World, make_build

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def compilers() -> dict[str, CudaToolchain]:
    found = cuda_compilers(Search(cache=KEPT))
    return {one.name: one for one in found if isinstance(one, CudaToolchain)}


@pytest.fixture
def sass(world: World, compilers: dict[str, CudaToolchain]) -> Build:
    return make_build(world.kernels[0], "sm_90", KEPT.root, compilers[NAME])


@pytest.fixture
def by_driver(world: World, compilers: dict[str, CudaToolchain]) -> Build:
    return make_build(world.kernels[0], "sm_90", KEPT.root, compilers["bundled"])


def page_of(build: Build, view: str = "") -> KernelPage:
    return kernel_page(build.kernel.name, build.pk, None, view=view)


def html_of(reader: Client, build: Build, query: str = "") -> str:
    address = f"{build.kernel.get_absolute_url()}?build={build.pk}{query}"
    return reader.get(address).content.decode()


@pytest.mark.parametrize("view", ["sass", "ptx"])
def test_both_texts_are_mapped_to_the_lines_of_the_source(sass: Build, view: str) -> None:
    page = page_of(sass, view)
    assert page.listing is not None
    assert page.view == view
    source = sass.kernel.source.split("\n")
    rows = page.listing.text.split("\n")
    loads = [
        line
        for line, text in zip(page.listing.lines, rows, strict=True)
        if line.kind == "instruction" and re.search(r"\bLDG\.|\bld\.global", text)
    ]
    assert loads
    assert {source[line.source - 1].strip() for line in loads} == {"acc += x[i] * x[i];"}
    inner = page.listing.inner_loop
    assert inner is not None
    assert 1 in {line.depth for line in loads}


def test_live_registers_are_those_of_the_machine_code(sass: Build) -> None:
    page = page_of(sass)
    assert page.listing is not None
    (function,) = [one for one in page.listing.functions if one.name in sass.resources]
    assert function.live_peak is not None
    assert 0 < function.live_peak <= sass.resources[function.name]["registers"]
    ptx = page_of(sass, "ptx").listing
    assert ptx is not None
    assert not ptx.follows_registers


def test_the_page_offers_both_and_each_has_an_address(reader: Client, sass: Build) -> None:
    page, ptx = html_of(reader, sass), html_of(reader, sass, "&view=ptx")
    assert re.search(r'view=ptx"\s*>PTX</a>', page)
    assert re.search(r'aria-current="page"\s*>SASS</a>', page)
    assert re.search(r'aria-current="page"\s*>PTX</a>', ptx)
    assert 'title="live registers"' in page
    assert 'title="live registers"' not in ptx
    assert "i-global" in ptx
    assert '"err"' not in page + ptx
    loop = page_of(sass, "ptx").listing
    assert loop is not None
    assert loop.inner_loop is not None
    alone = html_of(reader, sass, f"&view=ptx&loop={loop.inner_loop.first_line}")
    assert " only</strong>" in alone
    address = f"{reverse('kernel_json', args=[sass.kernel.name])}?build={sass.pk}&view=ptx"
    twin = reader.get(address).json()
    assert twin["view"] == "ptx"
    assert ".version" in twin["listing"]["text"]


def test_later_lines_come_from_the_text_that_is_shown(reader: Client, sass: Build) -> None:
    name = sass.kernel.name
    first = reverse("kernel_lines", args=[name, sass.pk, 1])
    assert ".version" in reader.get(f"{first}?view=ptx").content.decode()
    assert ".version" not in reader.get(first).content.decode()
    assert ".version" not in reader.get(f"{first}?view=none").content.decode()


def test_a_long_text_asks_for_its_own_lines(reader: Client, sass: Build) -> None:
    listing = page_of(sass, "ptx").listing
    assert listing is not None
    many = replace(listing, text="\n".join([listing.text] * 30), lines=listing.lines * 30)
    panes = codeview.panes(replace(page_of(sass, "ptx"), listing=many))
    assert 'data-later="1001"' in panes.listing
    base = f"{sass.kernel.get_absolute_url()}/{sass.pk}"
    assert panes.places["lines"] == f"{base}/lines/"
    assert panes.places["query"] == "?view=ptx"
    assert panes.places["index"] == f"{base}/index.json?view=ptx"


def test_resources_are_in_the_makers_own_words(reader: Client, sass: Build) -> None:
    page = page_of(sass)
    amd, nvidia = page.resource_tables
    assert amd.columns[0].heading == "VGPR"
    assert nvidia.waves == ("Warps", "per SM")
    ((row, cells),) = nvidia.rows
    assert cells[2] == [sass.resources[row.function]["registers"]]
    assert row.waves == sass.resources[row.function]["occupancy_warps_per_sm"]
    assert f"{row.waves} of 64" in html_of(reader, sass)


def test_a_page_speaks_of_a_build_in_its_makers_words(
    reader: Client, world: World, sass: Build
) -> None:
    page = html_of(reader, sass, "&tab=instructions")
    classes = re.findall(r'<span class="i-\w+">([^<]+)</span>', page)
    assert {"uniform", "shared memory", "local memory"} <= set(classes)
    assert re.search(r"Shared memory\s*<span", html_of(reader, sass, "&tab=resources"))
    assert ">Cubin</a>" in page
    amd = html_of(reader, world.kernels[0].builds.get(target="gfx942"), "&tab=instructions")
    classes = re.findall(r'<span class="i-\w+">([^<]+)</span>', amd)
    assert {"scalar", "LDS", "scratch"} <= set(classes)
    assert ">Code object</a>" in amd


def test_builds_of_two_makers_are_compared_by_what_both_have(
    reader: Client, world: World, sass: Build
) -> None:
    amd = world.kernels[0].builds.get(target="gfx942")
    page = compare_page([amd.pk, sass.pk])
    groups = {group.title: {row.name: row for row in group.rows} for group in page.groups}
    resources = groups["Occupancy and resources"]
    assert {"Occupancy", "registers", "code_bytes"} <= {*resources}
    assert not {"vgpr", "stack_bytes"} & {*resources}
    assert None not in resources["registers"].values
    (function,) = page.functions
    assert not function.is_line_by_line
    assert not function.rows
    assert min(groups["Instruction mix of the function"]["global"].values) > 0
    assert all(groups["Instruction mix of the inner loop"]["global"].values)
    html = reader.get(f"/compare?build={amd.pk}&build={sass.pk}").content.decode()
    assert "counted by class, not compared line by line" in html


def test_sass_and_ptx_are_two_languages(sass: Build, by_driver: Build) -> None:
    (function,) = compare_page([sass.pk, by_driver.pk]).functions
    assert not function.is_line_by_line


def test_each_makers_targets_have_a_table_of_their_own(reader: Client) -> None:
    text = re.sub(r"\s+", " ", reader.get("/devices").content.decode())
    amd, nvidia = re.findall(r'<table class="grid targets">.*?</table>', text)
    assert "<th>Target</th>" in amd
    assert "VGPRs <span" in amd
    assert ">gfx942<" in amd
    assert ">sm_90<" not in amd
    assert re.search(r"Warp <span class=\"unit\">threads</span>", nvidia)
    (row,) = re.findall(r'<tr> <td class="code">sm_90</td>.*?</tr>', nvidia)
    figures = re.findall(r'class="num">([^<]*)<', row)
    assert figures == ["32", "65 536", "256", "64", "32", "233 472"]


def test_the_size_of_the_code_is_that_of_its_section(sass: Build) -> None:
    ((_, cells),) = page_of(sass).resource_tables[1].rows
    assert sass.listing is not None
    last = re.findall(r"/\*([0-9a-f]{4})\*/", artifacts.read(sass.listing).decode())[-1]
    assert cells[-1] == [int(last, 16) + 16]


def test_a_build_of_elsewhere_says_so_and_what_would_let_in_more_warps(
    reader: Client, sass: Build
) -> None:
    Build.objects.filter(pk=sass.pk).update(
        **{"state": State.CANCELLED, "reason": ELSEWHERE, "listing": None, "intermediate": None},
        resources={name: {**one, "registers": 200} for name, one in sass.resources.items()},
    )
    page = html_of(reader, sass)
    assert re.search(r"Built on another machine with \S+ clang", page)
    assert "built on another machine</span>" in page
    assert "cancelled" not in page
    assert "fewer registers" in page


def test_every_file_can_be_taken_along(reader: Client, sass: Build, tmp_path: Path) -> None:
    name = sass.kernel.name
    for file, field in (("kernel.ptx", "intermediate"), ("kernel.cubin", "code_object")):
        answer = reader.get(reverse("kernel_download", args=[name, sass.pk, file]))
        content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        assert content == artifacts.read(getattr(sass, field))
    offline = reader.get(reverse("kernel_download", args=[name, sass.pk, "kernel.html"]))
    assert "live registers" in offline.content.decode()
    packed = {path.rpartition("/")[2] for path, _ in bundles._files_of([sass.pk])}
    assert packed == {"kernel.s", "kernel.ptx", "kernel.cubin", "kernel.so", "build.json"}


def test_without_an_assembler_the_page_shows_ptx_and_says_so(
    reader: Client, by_driver: Build
) -> None:
    assert by_driver.code_object is None
    assert by_driver.intermediate == by_driver.listing
    page = html_of(reader, by_driver)
    assert "PTX, assembled by the driver: install kiln[nvidia] for SASS" in page
    assert ">SASS</a>" not in page
    shown = page_of(by_driver)
    assert shown.listing is not None
    assert shown.listing.dialect == "ptx-listing"
    answer = reader.get(
        reverse("kernel_download", args=[by_driver.kernel.name, by_driver.pk, "kernel.cubin"])
    )
    assert answer.status_code == 404
    packed = {
        path.rpartition("/")[2]: content for path, content in bundles._files_of([by_driver.pk])
    }
    assert "kernel.cubin" not in packed
    assert packed["kernel.ptx"] == artifacts.read(by_driver.listing)
