"""Inspecting a kernel as an engineer does: from the graph to one instruction, and back again.

On the way the figures of every page are held against the database, and against the pages before.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.tuning.models import BenchmarkResult
from tests.e2e.journeys.figures import cells, facts, numbers, shows, shows_all, under
from tests.support.inlined import inlined
from tests.support.pages_world import World

pytestmark = pytest.mark.full


class Journey:
    """One reader in one browser, who remembers the figures that were read before."""

    def __init__(self, page: Page, world: World) -> None:
        self.page, self.world = page, world
        self.kernel: GeneratedKernel = world.kernels[0]
        self.result = BenchmarkResult.objects.get(kernel=self.kernel)
        self.build = inlined(Build.objects.get(kernel=self.kernel, target="gfx942"))
        (self.figures,) = self.build.resources.values()  # it has one device function
        self.node = world.nodes[1]

    def twin(self) -> dict[str, Any]:
        """What the page that is open says to programs."""
        address, query, rest = self.page.url.partition("#")[0].partition("?")
        answer = self.page.request.get(f"{address}.json{query}{rest}")
        assert answer.ok, answer.status
        found: dict[str, Any] = answer.json()
        return found

    def holds_the_time(self, row: dict[str, str]) -> None:
        """Median, interval and n of a table's row are those of the database, in microseconds."""
        assert shows(under(row, "Median"), self.result.median_ns / 1000)
        ends = self.result.low_ns / 1000, self.result.high_ns / 1000
        assert shows_all(under(row, "Interval"), *ends)
        assert under(row, "n") == str(len(self.result.samples_ns))

    def holds_in_json(self, row: dict[str, Any]) -> None:
        """The same of a twin's row, in nanoseconds."""
        found = row["median_ns"], row["metrics"]["time"]["low"], row["metrics"]["time"]["high"]
        assert found == (self.result.median_ns, self.result.low_ns, self.result.high_ns)
        assert row["metrics"]["time"]["n"] == len(self.result.samples_ns)
        assert row["emulated"] is self.result.emulated is True

    def opens_the_graph(self) -> None:
        """From the list of graphs."""
        self.page.goto("/graphs")
        row = self.page.locator("#graphs tbody tr")
        assert under(cells(row), "Measured nodes") == "3 of 3 emulated"
        row.get_by_role("link", name="tiny", exact=True).click()
        expect(self.page.locator("h1")).to_have_text("tiny")

    def reads_the_graph(self) -> None:
        """Sum, coverage, device, sizes, samples, shares; what the twin says of them."""
        page, median_us = self.page, self.result.median_ns / 1000
        verdict = page.locator("p.verdict")
        expect(verdict).to_contain_text("Sum of medians emulated")
        assert shows(verdict.inner_text(), 3 * median_us)
        said = facts(page)
        assert said["Measured nodes"] == "3 of 3"
        assert said["Measured on"] == "CPU emulation"
        assert said["Sizes"] == "s0=16"
        assert said["s0 (example)"].startswith("64 ")
        assert said["Samples"] == str(len(self.result.samples_ns))
        rows = [cells(row) for row in page.locator("#scheduled tbody tr").all()]
        assert [under(row, "Kernel") for row in rows] == [
            f"selected {self.kernel.name} \N{MULTIPLICATION SIGN}3"
        ] * 3
        assert sum(numbers(under(row, "Median"))[0] for row in rows) == pytest.approx(3 * median_us)
        assert all(shows(under(row, "Share"), 100 / 3) for row in rows)
        assert all("emulated" in next(h for h in row if h.startswith("Median")) for row in rows)
        twin = self.twin()
        assert twin["total_ns"] == 3 * self.result.median_ns
        assert (twin["measured"]["measured"], twin["measured"]["with_kernel"]) == (3, 3)
        for one in twin["scheduled"]:
            self.holds_in_json(one["serving"])
            assert one["share"] == pytest.approx(1 / 3)

    def opens_the_node_by_its_box(self) -> None:
        """A box of the drawing selects a row, the address keeps it, and the row leads on."""
        page, name = self.page, self.node.name
        box = page.locator(".graph-view .node").filter(has_text=re.compile(rf"{name}\b"))
        box.click()
        row = page.locator("#scheduled tr[aria-selected=true]")
        expect(row).to_have_count(1)
        expect(page).to_have_url(re.compile(rf"scheduled={name}$"))
        row.get_by_role("link", name=name, exact=True).click()
        expect(page.locator("h1")).to_have_text(re.compile(rf"^{name}\b"))

    def reads_the_candidates(self) -> None:
        """The time of what serves is the graph's; registers and occupancy are the build's."""
        page = self.page
        row = cells(page.locator("#candidates tbody tr", has_text=self.kernel.name))
        self.holds_the_time(row)
        selected = under(row, "Selected on")
        assert "default" in selected and "CPU emulation" in selected
        assert under(row, "Measured on") == "CPU emulation s0=16"
        figures = self.figures
        assert shows_all(under(row, "Registers"), figures["vgpr"])
        waves = f"{figures['occupancy_waves_per_simd']} of 8"
        assert under(row, "Occupancy").endswith(waves)
        assert shows(under(row, "Occupancy"), 100 * figures["occupancy_waves_per_simd"] / 8)
        (serving,) = (one for one in self.twin()["candidates"] if one["selected"])
        self.holds_in_json(serving["timing"])
        assert serving["resource_use"]["registers"] == figures["vgpr"]

    def opens_the_kernel(self) -> None:
        """By its name among the candidates."""
        link = self.page.locator("#candidates").get_by_role("link", name=self.kernel.name)
        link.click()
        expect(self.page.locator("h1")).to_have_text(self.kernel.name)
        tabs = self.page.get_by_role("navigation", name="Builds")
        tabs.get_by_role("link", name="gfx942").click()
        expect(tabs.locator("[aria-current]")).to_contain_text("gfx942")

    def opens_the_section(self, name: str) -> None:
        """One of those below the code."""
        tabs = self.page.get_by_role("navigation", name="Details")
        tabs.get_by_role("link", name=name).click()
        expect(tabs.locator("[aria-current]")).to_have_text(name)

    def reads_the_kernel(self) -> None:
        """What limits it, the next step, its measurement: the same as among the candidates."""
        page, figures = self.page, self.figures
        row = cells(page.locator("#resources tr[aria-selected=true]"))
        assert under(row, "Target") == "gfx942"
        assert shows_all(under(row, "Waves"), figures["occupancy_waves_per_simd"], 8)
        assert under(row, "Limiter") == figures["limiter"]
        assert under(row, "Next step")
        self.opens_the_section("Measurements")
        measured = cells(page.locator("#results tbody tr"))
        self.holds_the_time(measured)
        assert under(measured, "Device") == "CPU emulation emulated"
        assert under(measured, "Sizes") == "s0=16"
        twin = self.twin()
        self.holds_in_json(twin["results"][0])
        assert twin["build"]["target"] == "gfx942"
        (resources,) = (one for one in twin["resources"] if one["target"] == "gfx942")
        assert resources["resources"]["vgpr"] == figures["vgpr"]

    def reads_a_line_and_its_instructions(self) -> None:
        """A click on a line marks its instructions; one of them is explained; a header is opened at
        its line and leads back."""
        page = self.page
        source, listing = (page.locator(f"[data-pane={name}]") for name in ("source", "listing"))
        source.locator(".l", has_text="acc += x[i] * x[i]").locator(".t").click()
        load = listing.locator(".pin", has_text="global_load").first
        expect(load).to_be_in_viewport()
        load.locator(".i-global").hover()
        help_ = page.get_by_role("tooltip")
        expect(help_).to_contain_text("Each lane reads")
        page.keyboard.press("Escape")
        expect(help_).to_be_hidden()
        link = listing.locator("a.h").first
        number = (link.get_attribute("href") or "").rpartition("#")[2]
        link.click()
        expect(page.locator("h1")).to_contain_text("common/kiln/mma.h")
        expect(page.locator(f"#{number}")).to_be_in_viewport()
        page.locator(f"#{number} a.x").click()
        expect(page.locator("h1")).to_contain_text(self.kernel.name)

    def compares_with_another_target(self) -> None:
        """Both sides are ticked already; their figures are those of the kernel's own page."""
        page = self.page
        self.opens_the_section("Resources")
        own = {
            under(row, "Target"): row
            for row in map(cells, page.locator("#resources tbody tr").all())
        }
        self.opens_the_section("Builds and files")
        page.locator("#builds").get_by_role("button", name="Compare").click()
        expect(page.locator("h1")).to_have_text("Compare")
        sides = [cells(row) for row in page.locator("#sides tbody tr").all()]
        assert {under(side, "Target") for side in sides} == {"gfx942", "gfx1100"} == set(own)
        measured = next(side for side in sides if under(side, "Target") == "gfx942")
        self.holds_the_time(measured)
        assert "emulation" in under(measured, "Measured on")
        expect(page.get_by_label("Verdict")).to_contain_text("different targets")
        figures = page.locator("section[aria-labelledby=compare-figures]").text_content() or ""
        for side in sides:
            target = under(side, "Target")
            for heading in ("Waves", "Limiter"):
                assert under(own[target], heading) in figures, (heading, target)
        (left, right) = self.twin()["sides"]
        self.holds_in_json(next(one for one in (left, right) if one["target"] == "gfx942"))

    def goes_back_to_the_graph(self) -> None:
        """From the kernel one click leads to the graph's node that it computes."""
        page = self.page
        page.go_back()
        expect(page.locator("h1")).to_have_text(self.kernel.name)
        self.opens_the_section("Nodes and interface")
        link = page.locator("#provenance").get_by_role("link", name=re.compile("^linear_"))
        name = f"op{link.inner_text().removeprefix('linear_')}"
        link.click()
        expect(page.locator("h1")).to_have_text("tiny")
        expect(page.locator("#scheduled tr[aria-selected=true]")).to_contain_text(name)
        expect(page.locator(".graph-view .node.on")).to_contain_text(name)

    def finds_it_in_the_list(self) -> None:
        """The list of kernels has the same figures in its row."""
        self.page.goto("/kernels")
        row = cells(self.page.locator("tbody tr", has_text=self.kernel.name))
        figures = self.figures
        assert shows(under(row, "Median"), self.result.median_ns / 1000)
        assert "emulated" in under(row, "Median")
        assert shows(under(row, "Share"), 100)
        assert shows_all(under(row, "Registers"), figures["vgpr"])
        assert under(row, "Occupancy").endswith(f"{figures['occupancy_waves_per_simd']} of 8")
        assert "CPU emulation" in (self.page.locator("main").text_content() or "")
        (one,) = (one for one in self.twin()["kernels"] if one["name"] == self.kernel.name)
        found = one["median_ns"], one["low_ns"], one["high_ns"], one["n"]
        time = self.result
        assert found == (time.median_ns, time.low_ns, time.high_ns, len(time.samples_ns))


def test_from_the_graph_to_one_instruction_and_back(page: Page, world: World) -> None:
    journey = Journey(page, world)
    journey.opens_the_graph()
    journey.reads_the_graph()
    journey.opens_the_node_by_its_box()
    journey.reads_the_candidates()
    journey.opens_the_kernel()
    journey.reads_the_kernel()
    journey.reads_a_line_and_its_instructions()
    journey.compares_with_another_target()
    journey.goes_back_to_the_graph()
    journey.finds_it_in_the_list()
