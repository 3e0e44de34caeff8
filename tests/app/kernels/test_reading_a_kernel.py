"""What a kernel's page has for reading: headers, help on instructions, columns, the form beside."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.header.query import header_page
from codegen_app.kernels.pages.kernel.codeview import body_line
from codegen_app.kernels.pages.kernel.query import kernel_listing, kernel_page
from codegen_app.platform import artifacts
from scheduler.build.sandbox_paths import HEADER_ROOT
from tests.support.inlined import CALL, HEADER, LINE, inlined
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db


def build_of(world: World) -> Build:
    return inlined(world.kernels[0].builds.get(target="gfx942"))


def test_what_was_inlined_from_a_header_leads_to_its_line_there(
    reader: Client, world: World
) -> None:
    build = build_of(world)
    page = kernel_page(world.kernels[0].name, build.pk, None)
    assert page.listing is not None
    lines = [line for line in page.listing.lines if line.header]
    (line,) = lines
    assert (line.header, line.header_line, line.source) == (HEADER, LINE, CALL)
    html = reader.get(page.url, {"build": build.pk}).content.decode()
    for line in lines:
        address = reverse("header", args=[page.name, build.pk, line.header])
        assert f'href="{address}#L{line.header_line}"' in html
        text = (HEADER_ROOT / line.header).read_text().split("\n")[line.header_line - 1]
        shown = reader.get(address).content.decode()
        row = re.search(rf'id="L{line.header_line}".*?<span class="t">(.*)</span></div>', shown)
        assert row is not None
        assert unescape(re.sub("<[^>]*>", "", row[1])).startswith(text)


def test_a_header_counts_its_instructions_and_knows_whether_it_is_the_one_that_was_compiled(
    world: World,
) -> None:
    build = build_of(world)
    name = world.kernels[0].name
    view = kernel_listing(name, build.pk)
    file = next(iter(view.headers))
    page = header_page(name, build.pk, file)
    assert page.is_same is True
    assert page.instructions == sum(line.header == file for line in view.lines)
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    build.listing = artifacts.store(text.replace(view.headers[file], "0" * 32).encode(), ".s")
    build.save()
    assert header_page(name, build.pk, file).is_same is False


@pytest.mark.parametrize(
    "file",
    ["../places.py", "common/kiln/../../places.py", "/etc/passwd", "common/kiln/nowhere.h", "x"],
)
def test_no_other_file_is_shown_as_a_header(reader: Client, world: World, file: str) -> None:
    build = build_of(world)
    address = f"/kernels/{world.kernels[0].name}/{build.pk}/headers/{file}"
    assert reader.get(address).status_code in (404, 301, 302)
    assert reader.get(address, follow=True).status_code == 404


def test_instructions_of_both_makers_are_explained_with_their_sources(reader: Client) -> None:
    amd = reader.get("/instructions/gfx942/v_exp_f32_e32.json")
    assert amd.headers["Cache-Control"] == "private, max-age=3600"
    found = amd.json()
    assert found["known"]
    assert any(fact["value"] == "16 cycles" and "LLVM" in fact["source"] for fact in found["facts"])
    matrix = reader.get("/instructions/gfx942/v_mfma_f32_32x32x8_f16.json").json()
    assert "32 x 32 x 8" in matrix["title"]
    assert any(fact["value"] == "32 cycles" for fact in matrix["facts"])
    sass = reader.get("/instructions/sm_90/FFMA.FTZ.json").json()
    assert any("4 warps" in fact["value"] for fact in sass["facts"])
    assert "publishes no latencies" in sass["note"]


def test_what_is_not_known_of_an_instruction_is_said(reader: Client) -> None:
    found = reader.get("/instructions/gfx942/v_frobnicate_b32.json").json()
    assert not found["known"]
    assert found["facts"] == []
    page = reader.get("/instructions/gfx942/v_frobnicate_b32").content.decode()
    assert "There is no description of v_frobnicate_b32" in page
    assert reader.get("/instructions/gfx9999/s_nop").status_code == 404
    assert reader.get("/instructions/gfx942/%3Cb%3E").status_code == 404
    old = reader.get("/instructions/gfx1030/s_nop.json").json()
    assert "no figures for gfx1030" in old["note"]


def test_the_metadata_comment_is_folded_and_the_body_is_named(reader: Client, world: World) -> None:
    page = kernel_page(world.kernels[0].name, None, None)
    html = reader.get(page.url).content.decode()
    fold = re.search(r'<details data-fold="metadata">(.*?)</details>', html, re.DOTALL)
    assert fold is not None
    assert re.findall(r'id="L(\d+)"', fold[1]) == ["1", "2", "3"]
    assert "NAME_device(".replace("NAME", page.name) in page.source.split("\n")[body_line(page) - 1]


def test_source_lines_are_told_apart_by_ground_and_pattern(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    many = "".join(f"  acc = acc * x[{n}] + {n}.5f;\n" for n in range(20))
    kernel.source = kernel.source.replace("  tile[threadIdx.x] = acc;\n", many)
    lines = [number for number, text in enumerate(kernel.source.split("\n"), 1) if ".5f" in text]
    kernel.save()
    build = build_of(world)
    assert build.listing is not None
    loc = "".join(f"\t.loc\t0 {line} 3\n\tv_nop\n" for line in lines)
    text = artifacts.read(build.listing).decode().replace("\ts_endpgm", f"{loc}\ts_endpgm", 1)
    build.listing = artifacts.store(text.encode(), ".s")
    build.save()
    html = reader.get(kernel.get_absolute_url(), {"build": build.pk}).content.decode()
    looks = [re.search(rf'class="l (tint\d band\d)[^"]*" id="L{line}"', html) for line in lines]
    found = [look[1] for look in looks if look]
    assert len(found) == 20
    assert len(set(found)) == 18


def test_the_form_begins_with_the_shown_build_and_keeps_it_after_an_error(
    tuner: Client, world: World
) -> None:
    kernel = world.kernels[0]
    build = kernel.builds.get(target="gfx1100")
    query = {"build": build.pk, "tab": "builds"}
    html = tuner.get(kernel.get_absolute_url(), query).content.decode()
    form = re.search(r'<form class="filter build-form".*?</form>', html, re.DOTALL)
    assert form is not None
    ticked = re.findall(r'value="(\w+)"[^>]*checked', form[0])
    assert ticked == ["gfx1100"]
    action = unescape(re.search(r'action="([^"]*)"', form[0])[1])  # type: ignore[index]
    answer = tuner.post(action, {"target": ["gfx90a", "gfx942"], "flags": "-fplugin=x.so"})
    assert answer.status_code == 422
    again = answer.content.decode()
    assert 'value="-fplugin=x.so"' in again
    form = re.search(r'<form class="filter build-form".*?</form>', again, re.DOTALL)
    assert form is not None
    assert re.findall(r'value="(\w+)"[^>]*checked', form[0]) == ["gfx942", "gfx90a"]
    assert answer.context["page"].build.id == build.pk  # still the build that was looked at
