"""A kernel's page and the comparison of builds: instructions, loops, lines, and what is missing."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.kernel.codeview import listing_chunk
from codegen_app.kernels.pages.kernel.query import _cached_listing as read_before
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.kernels.queries.listing import ListingLine, ListingView, read_listing
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.web.codelines import CHUNK
from codegen_app.workers.models import State
from scheduler import targets
from tests.app import factories
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.django_db


def test_instructions_are_mapped_to_their_lines_and_the_inner_loop_is_found(
    reader: Client, world: World
) -> None:
    kernel = world.kernels[0]
    page = kernel_page(kernel.name, None, None)
    assert page.listing is not None
    source = kernel.source.split("\n")
    loads = [
        line
        for line, text in zip(page.listing.lines, page.listing.text.split("\n"), strict=True)
        if line.kind == "instruction" and "global_load" in text
    ]
    assert loads
    assert {source[line.source - 1].strip() for line in loads} == {"acc += x[i] * x[i];"}
    assert all(line.depth == 1 for line in loads)
    (function,) = page.listing.functions
    inner = page.listing.inner_loop
    assert inner is not None
    assert inner.counts["global"] == len(loads)
    allocated = page.builds[0].resources[function.name]["vgpr"]
    assert function.live_peak is not None
    assert 0 < function.live_peak <= allocated
    html = reader.get(kernel.get_absolute_url()).content.decode()
    assert f'id="I{page.listing.lines.index(loads[0]) + 1}" data-s="{loads[0].source}"' in html


def test_the_chunks_of_a_listing_are_the_listing(world: World) -> None:
    """Also within the metadata at its end, where a line by itself means something else."""
    page = kernel_page(world.kernels[0].name, None, None)
    assert page.listing is not None
    lines = page.listing.text.split("\n")
    repeated = read_listing("\n".join(lines + lines), targets.find("gfx1100"))
    rows: list[str] = []
    for first in range(1, len(repeated.lines) + 1, CHUNK):
        html = listing_chunk(repeated, first)
        assert '"err"' not in html
        rows += re.findall(r'<span class="t">(.*?)</span></div>(?=<div class="l|</div>|$)', html)
    assert [unescape(re.sub("<[^>]*>", "", row)) for row in rows] == lines + lines


def test_a_loop_can_be_read_alone(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    page = kernel_page(kernel.name, None, None)
    assert page.listing is not None
    (function,) = page.listing.functions
    loop = page.listing.inner_loop
    assert loop in function.loops
    inside = [
        (number, line)
        for first, last in loop.lines
        for number, line in enumerate(page.listing.lines[first - 1 : last], first)
    ]
    instructions = [number for number, line in inside if line.kind == "instruction"]
    assert len(instructions) == loop.instructions
    assert all(line.depth >= loop.depth for _, line in inside if line.kind == "instruction")
    html = reader.get(f"{kernel.get_absolute_url()}?loop={loop.first_line}").content.decode()
    assert [int(number) for number in re.findall(r'id="I(\d+)"', html)] == [n for n, _ in inside]
    places = re.search(r'<script id="listing-places" type="application/json">(.*?)</script>', html)
    assert places
    index = reader.get(json.loads(places[1])["index"]).json()
    assert len(index["source"]) == len(index["skipped"]) == len(page.listing.lines)
    shown = index["source"]
    assert {number for number, line in enumerate(shown, 1) if line} <= set(instructions)
    # A line at which no loop begins is the whole listing.
    whole = reader.get(f"{kernel.get_absolute_url()}?loop=2").content.decode()
    assert len(re.findall(r'id="I(\d+)"', whole)) == len(page.listing.lines)


def test_blocks_part_a_function_and_name_what_follows(world: World) -> None:
    page = kernel_page(world.kernels[0].name, None, None)
    assert page.listing is not None
    (function,) = page.listing.functions
    assert sum(block.instructions for block in function.blocks) == function.instructions
    begins = {block.first_line for block in function.blocks}
    assert all(set(block.successors) <= begins for block in function.blocks)
    text = page.listing.text.split("\n")
    for block in function.blocks:
        last = page.listing.lines[block.last_line - 1]
        if last.jump:
            assert last.jump in block.successors
        if block.label:
            assert text[block.first_line - 1].startswith(f"{block.label}:")


def test_a_peak_is_one_place_however_long_it_lasts() -> None:
    lines = [ListingLine("instruction", live=n, peak=n == 9) for n in (1, 9, 9, 3, 9, 2)]
    lines.insert(2, ListingLine("directive"))  # between two instructions of one stretch
    assert ListingView("", "gas", tuple(lines), ()).peaks == (2, 6)


def test_hazards_are_marked(reader: Client, world: World) -> None:
    build = world.kernels[0].builds.get(target="gfx942")
    ((name, resources),) = build.resources.items()
    assert "status warn" not in reader.get(world.kernels[0].get_absolute_url()).content.decode()
    build.resources = {name: {**resources, "vgpr_spills": 7, "scratch_bytes": 28}}
    build.save()
    html = reader.get(world.kernels[0].get_absolute_url()).content.decode()
    assert 'title="7 VGPRs and 0 SGPRs spilled">spills</span>' in html
    assert 'title="28 bytes of scratch memory per lane">scratch</span>' in html


def test_a_graph_node_leads_to_the_lines_that_compute_it(reader: Client, world: World) -> None:
    kernel, node = world.kernels[0], world.nodes[0]
    html = reader.get(f"{world.graph.get_absolute_url()}?view=nodes").content.decode()
    link = f"{kernel.get_absolute_url()}?node={node.pk}&amp;of=linear_0"
    assert re.search(f'href="{re.escape(link)}#L9"[^>]*>9\N{EN DASH}10</a>', html)
    assert f'{link}#L9">9\N{EN DASH}10</a>' in reader.get(node.get_absolute_url()).content.decode()
    shown = reader.get(unescape(link)).content.decode()
    marked = re.findall(r'class="l[^"]* of" id="L(\d+)"', shown)
    assert marked == ["9", "10"]
    assert "computes linear_0" in shown


def test_the_metadata_comment_leads_to_the_graph(reader: Client, world: World) -> None:
    page = reader.get(world.kernels[0].get_absolute_url()).content.decode()
    assert f'href="/graphs/{world.graph.pk}?node=linear_0">linear_0</a>' in page


def test_a_failed_build_shows_stage_reason_and_the_line(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    build = factories.build(
        kernel=kernel,
        target="gfx950",
        state=State.REJECTED,
        stage="compile",
        reason="use of undeclared identifier 'q'",
        log="source.hip:9:3: error: use of undeclared identifier 'q'",
        diagnostics=[{"severity": "error", "line": 9, "column": 3, "message": "undeclared 'q'"}],
    )
    page = reader.get(f"{kernel.get_absolute_url()}?build={build.pk}").content.decode()
    assert "use of undeclared identifier &#x27;q&#x27;" in page
    assert '<a href="#L9">9:3</a>' in page
    assert re.search(r'class="l[^"]* error" id="L9"', page)


def test_two_builds_are_compared_in_one_address(reader: Client, world: World) -> None:
    one, other = world.kernels[0].builds.order_by("target")
    page = compare_page([one.pk, other.pk])
    assert [side.target for side in page.sides] == ["gfx1100", "gfx942"]
    assert [side.label for side in page.sides] == ["gfx1100", "gfx942"]  # what differs
    assert page.same_source
    (function,) = page.functions
    assert not function.is_line_by_line, "CDNA and RDNA have two instruction sets"
    assert not function.rows
    groups = {group.title: {row.name: row for row in group.rows} for group in page.groups}
    assert {*groups["Instruction mix of the function"]} >= {"vector", "scalar", "global", "wait"}
    facts = groups["Occupancy and resources"]
    assert facts["Occupancy"].texts == ("16 of 16 waves per SIMD", "8 of 8 waves per SIMD")
    assert all(live for live in groups["Instructions"]["Live registers"].values)
    assert all(count for count in groups["Instructions"]["Instructions of the inner loop"].values)
    mix = groups["Instruction mix of the inner loop"]
    assert "matrix" not in mix, "a row that no side has anything of is not there"
    assert sum(row.values[0] for row in mix.values()) == pytest.approx(100), "shares"
    sizes = tuple(next(iter(build.resources.values()))["vgpr"] for build in (one, other))
    assert facts["vgpr"].values == sizes
    assert facts["vgpr"].ratios == (1.0, sizes[1] / sizes[0])
    assert page.shared["Flags"] == "-O3"
    assert "Target" not in page.shared
    html = reader.get(f"/compare?build={one.pk}&build={other.pk}").content.decode()
    assert "The same source." in html
    assert "agpr" not in html, "nor of the resources"
    assert reader.get(f"/compare.json?build={one.pk}&build={other.pk}").json()["functions"]
    for query in (f"build={one.pk}&build=999999", "build=999999", "build=x&build=y"):
        assert reader.get(f"/compare?{query}").status_code == 404, query


def test_a_build_beside_itself_has_no_difference(world: World) -> None:
    build = world.kernels[0].builds.first()
    assert build is not None
    page = compare_page([build.pk, build.pk])
    assert all(row.change == "gap" for function in page.functions for row in function.rows)
    assert not any(group.changed for group in page.groups)
    assert page.equal_figures


def test_three_kernels_are_compared_two_by_two(reader: Client, code_cache: Path) -> None:
    kernels = make_world(code_cache, candidates=3, compiled=3).kernels
    names = "&".join(f"kernel={kernel.name}" for kernel in kernels)
    answer = reader.get(f"/compare?{names}&target=gfx1100")
    builds = [kernel.builds.get(target="gfx1100").pk for kernel in kernels]
    assert answer.headers["Location"] == "/compare?" + "&".join(f"build={pk}" for pk in builds)
    page = compare_page(builds, shown=2)
    labels = [f"block={kernel.config['block']}" for kernel in kernels]
    assert [side.label for side in page.sides] == labels, "by the parameters that differ"
    assert (page.left.kernel, page.right.kernel) == (kernels[0].name, kernels[2].name)
    changed = [row for row in page.source if row.change == "changed"]
    assert "int i = threadIdx.x; i < n; i += 256" in [
        row.right_text.strip()[5:-3] for row in changed
    ]
    both = kernels[0].source.split("\n"), kernels[2].source.split("\n")
    for row in page.source:
        for lines, number, text in zip(
            both, (row.left, row.right), (row.left_text, row.right_text), strict=True
        ):
            assert not number or lines[number - 1] == text
    html = reader.get(f"{answer.headers['Location']}&shown=2").content.decode()
    assert f"{labels[0]} | {labels[2]}" in html
    assert reader.get(f"/compare?{names}&target=gfx90a").status_code == 404  # none is built for it


def test_other_candidates_are_compared_with_the_default(code_cache: Path) -> None:
    world = make_world(code_cache, candidates=2, compiled=2)
    default, other = node_page(world.nodes[0].pk).candidates
    assert all(build.compare == "" for build in default.builds)
    pairs = {build.target: build.id for build in default.builds}
    assert [build.compare for build in other.builds] == [
        f"/compare?build={pairs[build.target]}&build={build.id}" for build in other.builds
    ]


def test_downloads_are_what_was_built(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    build = Build.objects.filter(kernel=kernel, target="gfx942").get()
    base = f"/kernels/{kernel.name}"
    assert reader.get(f"{base}/source.hip").content.decode() == kernel.source
    code = b"".join(reader.get(f"{base}/{build.pk}/kernel.hsaco").streaming_content)
    assert code.startswith(b"\x7fELF")
    assert reader.get(f"{base}/{build.pk}/passwd").status_code == 404
    other = world.kernels[1]
    assert reader.get(f"/kernels/{other.name}/{build.pk}/kernel.s").status_code == 404


def test_files_missing_from_the_storage_leave_the_page_standing(
    reader: Client, world: World, settings: Any, tmp_path: Path
) -> None:
    kernel = world.kernels[0]
    settings.MEDIA_ROOT = tmp_path / "elsewhere"
    read_before.cache_clear()
    assert reader.get(kernel.get_absolute_url()).status_code == 200
    build = kernel.builds.first()
    assert build is not None
    for file in ("kernel.s", "lines/1"):
        answer = reader.get(f"/kernels/{kernel.name}/{build.pk}/{file}")
        assert answer.status_code == 404, file


def test_a_build_for_another_target_is_queued_from_the_page(tuner: Client, world: World) -> None:
    kernel = world.kernels[0]
    answer = tuner.post(reverse("build_kernel", args=[kernel.name]), {"target": "gfx90a"})
    build = Build.objects.get(kernel=kernel, target="gfx90a")
    assert build.state == State.QUEUED
    assert answer.headers["Location"].endswith(f"?build={build.pk}&tab=builds")
    for form, said in (
        ({"target": "gfx1"}, "gfx1 is not a target"),
        ({}, "No target is selected"),
        ({"target": "gfx90a", "flags": "-fplugin=x.so"}, "is not allowed"),
    ):
        answer = tuner.post(reverse("build_kernel", args=[kernel.name]), form)
        page = answer.content.decode()
        assert (answer.status_code, page.count("field-error")) == (422, 1), form
        assert said in page, form
        assert f'href="{kernel.get_absolute_url()}?build=' in page, "its links are the page's own"
    assert Build.objects.filter(kernel=kernel, state=State.QUEUED).count() == 1


def test_builds_for_many_targets_with_flags_are_rows(tuner: Client, world: World) -> None:
    kernel = world.kernels[0]
    form = {"target": ["gfx90a", "gfx942", "gfx1201"], "flags": "-O1 -ffast-math -DFAST=1"}
    address = tuner.post(reverse("build_kernel", args=[kernel.name]), form).headers["Location"]
    asked = Build.objects.filter(kernel=kernel, state=State.QUEUED)
    assert {build.target for build in asked} == set(form["target"])
    assert {tuple(build.flags) for build in asked} == {("-O1", "-ffast-math", "-DFAST=1")}
    page = tuner.get(address).content.decode()
    assert page.count("-O1 -ffast-math -DFAST=1") >= 3
    # The page watches the builds, and is shown anew once what it waits for is there.
    polled = re.search(r'hx-get="([^"]*waiting=[^"]*)"', page)
    assert polled
    look = unescape(polled[1])
    answer = tuner.get(look, headers={"HX-Request": "true"})
    assert answer.content.decode().lstrip().startswith('<section id="builds"')
    assert "HX-Refresh" not in answer.headers
    asked.update(state=State.CANCELLED, finished_at=timezone.now())
    answer = tuner.get(look, headers={"HX-Request": "true"})
    assert answer.headers["HX-Refresh"] == "true"
    assert "hx-get" not in answer.content.decode()
