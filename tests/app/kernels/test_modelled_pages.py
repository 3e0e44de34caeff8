"""What the model says, on a kernel's page and beside another's: every figure with its board."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from codegen_app.kernels.modelled.comparison import compare_modelled
from codegen_app.kernels.modelled.timeline import MAX_LANES, MAX_SPANS
from codegen_app.kernels.modelled.view import HEAT_LEVELS, modelled_view
from codegen_app.kernels.models import Build, GeneratedKernel, Modelling
from codegen_app.kernels.pages.kernel import codeview, timelineview
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.kernels.queries.fingerprints import kernel_fingerprint
from codegen_app.kernels.queries.listing import read_listing
from codegen_app.platform import artifacts
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.queries.modelled_candidates import modelled_times
from scheduler import targets
from scheduler.cycles.report import Pipe, Report, StallReason
from scheduler.isa.instructions import Kind
from tests.support import modelled
from tests.support.pages_world import World, make_world, store_report

pytestmark = pytest.mark.django_db

SIZES = {"s0": 64}


@pytest.fixture
def world(code_cache: Path) -> World:
    """Two kernels, both built."""
    return make_world(code_cache, compiled=2)


def build_of(kernel: GeneratedKernel, target: str = "gfx942") -> Build:
    return kernel.builds.select_related("listing").get(target=target)


def text_of(build: Build) -> str:
    assert build.listing is not None
    return artifacts.read(build.listing).decode()


def keep(
    kernel: GeneratedKernel,
    target: str = "gfx942",
    board: str = "MI300X",
    sizes: Mapping[str, int] = SIZES,
    **fields: object,
) -> Modelling:
    build = build_of(kernel, target)
    fields = {"kernel": kernel.name, "sizes": sizes, **fields}
    report = modelled.report(text_of(build), target, board, **fields)  # type: ignore[arg-type]
    return store_report(build, board, sizes, report)


def text(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def test_the_columns_stand_beside_their_instructions(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel)
    html = reader.get(f"{kernel.get_absolute_url()}?build={build_of(kernel).pk}").content.decode()
    page = kernel_page(kernel.name, build_of(kernel).pk, None)
    assert page.listing is not None
    lines = page.listing.text.split("\n")
    for number, line in enumerate(page.listing.lines, 1):
        row = re.search(rf'<div class="l[^"]*" id="I{number}".*?</div>', html)
        assert row is not None
        if line.kind == "instruction" and "ds_" in lines[number - 1]:
            assert '<span class="m m-bank bad">1.67</span>' in row[0]
        if line.instruction == Kind.WAIT:
            times = 16 if line.depth else 1
            assert f'<span class="m m-stall">{40 * times}</span>' in row[0]
            assert f"stall {40 * times} cycles (global loads {40 * times})" in row[0]
            assert "modelled on MI300X at s0=64" in row[0]
        if "global_load" in lines[number - 1]:
            assert "256/512" in row[0]


def test_the_source_is_heated_by_where_waves_wait(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel)
    page = kernel_page(kernel.name, build_of(kernel).pk, None)
    shown = page.modelled.shown
    assert shown is not None
    assert sum(row.share for row in shown.lines.values()) == pytest.approx(1.0, abs=0.02)
    hottest = max(shown.lines, key=lambda number: shown.lines[number].share)
    assert shown.lines[hottest].heat == HEAT_LEVELS
    html = reader.get(f"{kernel.get_absolute_url()}?build={build_of(kernel).pk}").content.decode()
    row = re.search(rf'<div class="l[^"]*heat{HEAT_LEVELS}[^"]*" id="L{hottest}".*?</div>', html)
    assert row is not None, "a class for the colour"
    assert f"{100 * shown.lines[hottest].share:.1f}%</span>" in row[0], "and a figure beside it"
    (linear,) = [row for row in page.provenance if row.node == "linear_0"]
    assert linear.waits == pytest.approx(shown.lines[9].share + shown.lines[10].share)


def test_one_sentence_stands_above_the_code_with_its_board_and_sizes(
    reader: Client, world: World
) -> None:
    kernel = world.kernels[0]
    keep(kernel, unknown={"v_odd_b32": 3})
    html = text(
        reader.get(f"{kernel.get_absolute_url()}?build={build_of(kernel).pk}").content.decode()
    )
    sentence = "waits for global loads 31% of the time"
    assert "on MI300X at s0=64: band 10.00 \N{EN DASH} 15.00 µs. Not measured on gfx942." in html
    assert html.index("12.50 µs") < html.index("Not measured on gfx942.")
    assert "Bottleneck modelled bound by LDS: 128-bit reads conflict" in html
    assert sentence in html
    assert html.index(sentence) < html.index("line stall")
    assert "unsupported instructions" in html


def test_each_board_and_size_is_a_link_that_shows_its_build(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel)
    other = keep(kernel, "gfx1100", "RX 7900 XTX", {"s0": 128}, time_us=77.0)
    page = reader.get(f"{kernel.get_absolute_url()}?model={other.pk}").content.decode()
    assert "77.00 µs" in text(page)
    assert "On RX 7900 XTX at s0=128, for gfx1100" in text(page)
    data = reader.get(f"{kernel.get_absolute_url()}.json?model={other.pk}").json()
    assert data["build"]["target"] == "gfx1100"
    assert data["modelled"]["shown"]["time_us"] == {"low": 77 * 0.8, "mid": 77.0, "high": 77 * 1.2}
    assert {row["board"] for row in data["modelled"]["rows"]} == {"MI300X", "RX 7900 XTX"}
    for row in data["modelled"]["rows"]:
        assert f"model={row['id']}" in page


def test_a_launch_of_many_is_chosen_by_a_link(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    row = keep(kernel, launches=30)
    address = f"{kernel.get_absolute_url()}?model={row.pk}"
    page = reader.get(f"{address}&launch=7").content.decode()
    assert "launch=8#modelled" in page
    assert "Launch 7:" in text(page)
    data = reader.get(f"{kernel.get_absolute_url()}.json?model={row.pk}&launch=7").json()
    assert data["modelled"]["shown"]["shown"]["number"] == 7
    assert reader.get(f"{address}&launch=99").status_code == 200


def test_chunks_of_the_listing_have_the_figures_too(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    build, row = build_of(kernel), keep(kernel)
    address = f"{kernel.get_absolute_url()}/{build.pk}/lines/1"
    assert "m-stall" in reader.get(f"{address}?model={row.pk}").content.decode()
    assert "m-stall" not in reader.get(address).content.decode()
    elsewhere = keep(world.kernels[0], "gfx1100", "RX 7900 XTX")
    of_another = reader.get(f"{address}?model={elsewhere.pk}").content.decode()
    assert "m-stall" not in of_another, "a report of another build says nothing of these lines"


def test_a_report_of_other_code_is_not_shown(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel)
    Build.objects.filter(kernel=kernel).update(code_digest="0" * 64)
    address = f"{kernel.get_absolute_url()}?build={build_of(kernel).pk}&tab=modelled"
    html = reader.get(address).content.decode()
    assert "outdated" in html
    assert "m-stall" not in html


def test_a_report_whose_file_is_gone_says_so(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    row = keep(kernel, time_us=3.21)
    assert row.report is not None
    default_storage.delete(row.report.path)
    page = reader.get(f"{kernel.get_absolute_url()}?model={row.pk}")
    assert "The report file is missing" in page.content.decode()
    assert reader.get(f"/modelled/{row.pk}/report.json").status_code == 404


def long_report(count: int = 3000) -> tuple[Report, str]:
    """A kernel of so many instructions."""
    listing = modelled.listing(["s_waitcnt vmcnt(0)", "v_mov_b32 v0, v1"] * (count // 2), "f")
    return modelled.report(listing, waves=MAX_LANES + 2), listing


@pytest.mark.full
def test_the_timeline_of_a_long_kernel_is_shown_a_window_at_a_time() -> None:
    report, listing = long_report()
    view = read_listing(listing, targets.find("gfx942"))
    seen: set[tuple[int, int, int]] = set()
    at: int | None = None
    windows = 0
    while True:
        found = modelled_view(report, view, 0, at).timeline
        assert found is not None
        spans = [(lane.wave, one.start, one.line) for lane in found.lanes for one in lane.spans]
        assert len(spans) <= MAX_SPANS + len(found.lanes), "with those that began before it"
        seen.update(spans)
        windows += 1
        svg = timelineview.timeline(found)
        assert svg.count("<rect") == len(spans)
        if found.later is None:
            break
        assert found.later > found.start
        at = found.later
    assert windows > 10
    begun = {
        (lane.wave, span.start)
        for lane in report.launches[0].timeline[:MAX_LANES]
        for span in lane.spans
    }
    assert begun <= {(wave, start) for wave, start, _ in seen}, "none is left out"
    back = modelled_view(report, view, 0, at).timeline
    assert back is not None
    assert back.earlier is not None
    assert back.hidden == 2


def test_a_span_leads_to_its_line_and_says_what_it_is() -> None:
    report, listing = long_report(4)
    view = read_listing(listing, targets.find("gfx942"))
    found = modelled_view(report, view).timeline
    assert found is not None
    svg = timelineview.timeline(found, "?a=1&b=2")
    first = view.text.split("\n").index("\ts_waitcnt vmcnt(0)") + 1
    assert f'href="?a=1&amp;b=2#I{first}"' in svg
    assert f"stall (global loads), 40 cycles, line {first}: s_waitcnt vmcnt(0)" in svg
    assert "style=" not in svg, "the Content-Security-Policy allows none"


def test_a_report_without_its_listing_has_no_lines() -> None:
    """As of somebody else's kernel whose listing is another, or not there."""
    report, _ = long_report(4)
    for listing in (None, read_listing(modelled.listing(["s_nop 0"]), targets.find("gfx942"))):
        view = modelled_view(report, listing)
        assert not view.by_line
        assert view.timeline is not None
        assert "<a " not in timelineview.timeline(view.timeline)
    idle = replace(report.launches[0], timeline=(), limits=(), instructions=(), loops=())
    nothing = modelled_view(replace(report, launches=(idle,)), None)
    assert (nothing.timeline, nothing.hottest, nothing.lines) == (None, (), {})


def test_text_of_a_listing_is_escaped() -> None:
    report, _ = long_report(2)
    listing = modelled.listing(["s_waitcnt <b>&", 's_nop "x"'], "f")
    view = read_listing(listing, targets.find("gfx942"))
    found = modelled_view(report, view).timeline
    assert found is not None
    assert "<b>" not in timelineview.timeline(found)
    assert "<b>" not in codeview.listing_chunk(view, 1, modelled_view(report, view))


def test_two_kernels_stand_side_by_side(reader: Client, world: World) -> None:
    one, other = world.kernels
    builds = [build_of(one).pk, build_of(other).pk]
    keep(one, time_us=10.0)
    keep(other, time_us=14.0)
    keep(other, sizes={"s0": 999}, time_us=99.0)
    found = compare_modelled(builds)
    assert found is not None
    assert [side.sizes for side in found.sides if side] == [SIZES, SIZES], "what both have"
    groups = {group.title: {row.name: row for row in group.rows} for group in found.groups}
    assert groups["Time"]["all launches"].values == (10.0, 14.0)
    assert groups["Time"]["all launches"].ratios == (1.0, 1.4)
    assert groups["Pipes busy"]["LDS"].values == (62.0, 62.0)
    assert groups["Stall reasons"][StallReason.GLOBAL].values == (31.0, 31.0)
    conflicts = groups["Instructions"]["LDS bank conflict factor"]
    assert conflicts.values == pytest.approx((1.67, 1.67))
    assert groups["Instructions"]["bytes used of bytes moved"].values == (50.0, 50.0)
    html = text(reader.get(f"/compare?build={builds[0]}&build={builds[1]}").content.decode())
    assert "all launches µs 10.00 14.00 1.400\N{MULTIPLICATION SIGN}" in html
    assert "s0=64: 10.00 µs" in html
    assert (
        json.loads(reader.get(f"/compare.json?build={builds[0]}&build={builds[1]}").content)[
            "modelled"
        ]["sides"][1]["board"]
        == "MI300X"
    )


def test_unmeasured_kernels_are_compared_by_their_modelled_times(
    reader: Client, world: World
) -> None:
    one, other = world.kernels
    BenchmarkResult.objects.update(build=build_of(one, "gfx1100"))
    keep(one, time_us=10.0)
    keep(other, time_us=40.0)
    address = f"/compare?build={build_of(one).pk}&build={build_of(other).pk}"
    html = text(reader.get(address).content.decode())
    assert "modelled 4\N{MULTIPLICATION SIGN} slower" in html
    assert "times as long as" in html
    assert "the bands do not overlap" in html
    keep(other, time_us=10.5)
    html = text(reader.get(address).content.decode())
    assert "the bands overlap" in html
    assert "modelled 1" not in html


def test_a_side_that_was_not_modelled_has_no_figures(reader: Client, world: World) -> None:
    one, other = world.kernels
    builds = [build_of(one).pk, build_of(other).pk]
    assert compare_modelled(builds) is None
    assert (
        "modelled-sides"
        not in reader.get(f"/compare?build={builds[0]}&build={builds[1]}").content.decode()
    )
    keep(other)
    found = compare_modelled(builds)
    assert found is not None
    assert found.sides[0] is None
    (time,) = [row for group in found.groups for row in group.rows if row.name == "all launches"]
    assert (time.values, time.ratios) == ((None, 12.5), (None, None))
    page = text(reader.get(f"/compare?build={builds[0]}&build={builds[1]}").content.decode())
    assert "all launches µs 12.50" in page


def test_a_pipe_that_only_one_side_uses_is_nothing_on_the_other(world: World) -> None:
    one, other = world.kernels
    keep(one)
    row = keep(other)
    launch = modelled.report(text_of(build_of(other))).launches[0]
    busy = replace(launch, pipes={Pipe.MATRIX: 0.9})
    report = replace(modelled.report(text_of(build_of(other)), sizes=SIZES), launches=(busy,))
    store_report(row.build, "MI300X", SIZES, report)
    found = compare_modelled([build_of(one).pk, build_of(other).pk])
    assert found is not None
    (pipes,) = [group for group in found.groups if group.title == "Pipes busy"]
    matrix = next(row for row in pipes.rows if row.name == "matrix")
    assert matrix.values == (0.0, 90.0)
    assert matrix.ratios == (None, None)


def test_candidates_have_modelled_times_of_one_board_and_binding(
    reader: Client, world: World
) -> None:
    """Those of two boards or sizes never stand beside each other."""
    one, other = world.kernels
    keep(one, time_us=10.0)
    keep(other, time_us=14.0)
    keep(one, sizes={"s0": 128}, time_us=20.0)
    keep(one, "gfx1100", "RX 7900 XTX", time_us=30.0)
    page = node_page(world.nodes[0].pk)
    assert page.modelled_at is not None
    assert (page.modelled_at.board, page.modelled_at.sizes) == ("MI300X", SIZES)
    assert [row.modelled.time_us for row in page.candidates if row.modelled] == [10.0, 14.0]
    html = reader.get(f"/nodes/{world.nodes[0].pk}?x=modelled").content.decode()
    assert "modelled time, µs: not measured, by a model of MI300X at s0=64" in text(html).replace(
        "\\u00b5", "µ"
    )
    assert "10.00 (8.000 \N{EN DASH} 12.00)" in text(html)
    assert reader.get(f"/nodes/{world.nodes[0].pk}?y=modelled").status_code == 200


def test_modelled_times_are_those_of_the_measured_device_where_there_are_any(world: World) -> None:
    one, other = world.kernels
    keep(one)
    keep(other)
    keep(one, "gfx1100", "RX 7900 XTX", {"s0": 16}, time_us=30.0)
    builds = {kernel.pk: [row.pk for row in kernel.builds.all()] for kernel in world.kernels}
    at, found = modelled_times(builds, "gfx1100", "AMD Radeon RX 7900 XTX", {"s0": 16, "s1": 3})
    assert at is not None
    assert (at.where, list(found)) == ("RX 7900 XTX at s0=16", [one.pk])
    assert modelled_times({}) == (None, {})


def test_a_kept_page_is_rendered_again_once_there_is_a_report(world: World) -> None:
    """And not for each sign of life of the worker that makes it."""
    kernel = world.kernels[0]
    before = kernel_fingerprint(kernel.name)
    row = keep(kernel)
    there = kernel_fingerprint(kernel.name)
    assert there != before
    Modelling.objects.filter(pk=row.pk).update(heartbeat_at=timezone.now())
    assert kernel_fingerprint(kernel.name) == there
    Modelling.objects.filter(pk=row.pk).update(state="cancelled")
    assert kernel_fingerprint(kernel.name) != there
