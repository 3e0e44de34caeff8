"""The explorer's figures against the rows that they are of, on the page, in its twin and plots."""

from __future__ import annotations

import html
import json
import math
import re
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.tuning.pages.run.query import _candidates, run_page
from codegen_app.workers.models import State
from tests.support.queries import assert_steady, queries_of
from tests.support.trials_world import SPACE, TrialsWorld, make_trials, time_us

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    """Somebody who may read."""
    browser = Client()
    browser.force_login(User.objects.create_user("reader"))
    return browser


@pytest.fixture
def made() -> TrialsWorld:
    return make_trials()


def data_of(page: str, name: str) -> Any:
    """A figure, or the trials, as the script reads it."""
    found = re.search(rf'<div id="{name}"(?: hidden)?>(.*?)</div>', page, re.DOTALL)
    assert found, f"no {name}"
    return json.loads(html.unescape(found[1]))


def read(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def addresses(made: TrialsWorld) -> tuple[str, str]:
    return made.node.get_absolute_url(), made.run.get_absolute_url()


def test_the_twin_the_plots_and_the_rows_say_the_same(client: Client, made: TrialsWorld) -> None:
    for address in addresses(made):
        twin = json.loads(read(client, f"{address}.json"))["explorer"]
        page = read(client, address)
        times = sorted(one["time_us"] for one in twin["trials"] if one["time_us"] is not None)
        assert times == pytest.approx(sorted(made.times.values())), address
        assert (twin["times"], twin["sizes"]) == ("measured", {"s0": 512})
        figure = data_of(page, "explorer-trials")
        points = [trace for trace in figure["data"] if trace.get("customdata")]
        drawn = sorted(y for trace in points if "yaxis" not in trace for y in trace["y"])
        assert drawn == pytest.approx(times, rel=1e-5), address
        linked = data_of(page, "explorer-data")
        assert linked["rows"] == [one["row"] for one in twin["trials"]]
        assert [one["name"] for one in linked["parameters"]] == [
            one["name"] for one in twin["parameters"]
        ]
        states = twin["states"]
        assert states["measured"] == len(made.times)
        assert states["wrong"] >= 2 and states["compile error"] >= 1 and states["quarantined"] >= 1
        assert states["rejected"] == 1  # BLOCK_M=512, by a rule


def test_each_slice_and_cell_has_the_times_of_its_trials(client: Client, made: TrialsWorld) -> None:
    for address in addresses(made):
        query = "?across=BLOCK_M&down=layout&cell=median"
        twin = json.loads(read(client, f"{address}.json{query}"))["explorer"]
        of_value: dict[str, list[float]] = {}
        of_cell: dict[tuple[str, str], list[float]] = {}
        order = [dict(zip(SPACE, values, strict=True)) for values in _space()]
        for position, time in made.times.items():
            config = order[position]
            assert time == time_us(config, position)
            of_value.setdefault(str(config["BLOCK_M"]), []).append(time)
            of_cell.setdefault((str(config["BLOCK_M"]), config["layout"]), []).append(time)
        found = next(one for one in twin["slices"] if one["name"] == "BLOCK_M")["values"]
        assert [one["value"] for one in found] == ["32", "64", "128", "256", "512"][: len(found)]
        for one in found:
            times = of_value.get(one["value"], [])
            assert one["group"]["n"] == len(times)
            assert one["group"]["best"] == (pytest.approx(min(times)) if times else None)
        grid = twin["grid"]
        assert (grid["across"], grid["down"], twin["cell"]) == ("BLOCK_M", "layout", "median")
        for row, cells in zip(grid["rows"], grid["cells"], strict=True):
            for column, cell in zip(grid["columns"], cells, strict=True):
                times = of_cell.get((column, row), [])
                assert (cell["n"] if cell else 0) == len(times)
        page = read(client, address + query)
        heat = data_of(page, "explorer-grid")["data"][0]
        assert heat["z"][0][0] == pytest.approx(math.log10(grid["cells"][0][0]["median"]), abs=1e-5)
        assert f"n {grid['cells'][0][0]['n']}" in heat["text"][0][0]


def _space() -> list[tuple[Any, ...]]:
    return list(product(*SPACE.values()))


def test_importance_names_what_decides_and_says_by_what_and_of_how_many(
    client: Client, made: TrialsWorld
) -> None:
    for address in addresses(made):
        found = json.loads(read(client, f"{address}.json"))["explorer"]["importance"]
        assert found["shares"][0]["name"] == "BLOCK_M"
        assert found["n"] == len(made.times)
        assert not next(one for one in found["shares"] if one["name"] == "layout")["beyond_chance"]
        assert found["interactions"][0]["names"] == ["BLOCK_M", "BLOCK_N"]
        page = " ".join(read(client, address).split())
        assert "adjusted R²" in page and f"n {len(made.times)}" in page
        assert "no more than chance" in page and "The plots need JavaScript" in page
        assert "of 5 samples" in page or "median of 5" in page


def test_the_best_line_only_falls_and_ends_at_the_fastest(
    client: Client, made: TrialsWorld
) -> None:
    for address in addresses(made):
        twin = json.loads(read(client, f"{address}.json"))["explorer"]
        best = [one["time_us"] for one in twin["best"]]
        assert best == sorted(best, reverse=True)
        assert best[-1] == pytest.approx(min(made.times.values()))
        line = data_of(read(client, address), "explorer-trials")["data"]
        (line,) = [trace for trace in line if trace.get("meta") == "best"]
        assert line["y"][-1] == pytest.approx(best[-1], rel=1e-5)


def test_what_has_no_time_is_in_the_plot_with_its_stage(client: Client, made: TrialsWorld) -> None:
    for address in addresses(made):
        page = read(client, address)
        figure = data_of(page, "explorer-trials")
        failed = {t["meta"]: t for t in figure["data"] if str(t.get("meta")).startswith("failed")}
        assert "failed:wrong" in failed and "failed:compile error" in failed
        assert any("check: error 3.1e-02" in text for text in failed["failed:wrong"]["hovertext"])
        assert any("&lt;of&gt;" in t for t in failed["failed:compile error"]["hovertext"])
        assert figure["layout"]["yaxis2"]["ticktext"] == sorted(
            name.removeprefix("failed:") for name in failed
        )
        by_value = data_of(read(client, f"{address}?x=BLOCK_M"), "explorer-trials")
        counts = [t for t in by_value["data"] if t.get("meta") == "failed:wrong"]
        assert counts and by_value["layout"]["xaxis"]["ticktext"][:4] == ["32", "64", "128", "256"]


def test_points_of_one_value_are_spread_the_same_way_each_time(
    client: Client, made: TrialsWorld
) -> None:
    address = f"{made.node.get_absolute_url()}?x=BLOCK_M&colour=STAGES"
    one, other = (data_of(read(client, address), "explorer-trials") for _ in range(2))
    assert one == other
    points = [trace for trace in one["data"] if str(trace.get("name")).startswith("STAGES=")]
    assert len(points) == 2
    for trace in points:
        assert len(set(trace["x"])) == len(trace["x"]), "no two points of a value cover each other"
        assert all(abs(x - round(x)) < 0.3 for x in trace["x"])
    assert one["layout"]["yaxis"]["title"]["text"] == "median, µs at s0=512"


def test_a_filter_keeps_rows_of_the_table_and_names_them_for_the_plots(
    client: Client, made: TrialsWorld
) -> None:
    for address, grid in zip(addresses(made), ("candidates", "ledger"), strict=True):
        query = "?filter=BLOCK_M>=128 layout==row"
        page = read(client, address + query)
        kept = data_of(page, "explorer-matching")
        twin = json.loads(read(client, f"{address}.json"))["explorer"]
        codes = {one["name"]: one for one in twin["parameters"]}

        def value(name: str, at: int, codes: dict[str, Any] = codes) -> str:
            return str(codes[name]["values"][codes[name]["codes"][at]])

        expected = [
            one["row"]
            for at, one in enumerate(twin["trials"])
            if int(value("BLOCK_M", at)) >= 128 and value("layout", at) == "row"
        ]
        assert sorted(kept) == sorted(expected) and len(kept) < len(twin["trials"])
        table = page.partition(f'id="{grid}"')[2].partition("</table>")[0]
        assert table.count("<tr id=") == len(expected)
        part = client.get(address + query, headers={"HX-Request": "true"}).content.decode()
        assert data_of(part, "explorer-matching") == kept and "<html" not in part
    assert data_of(read(client, addresses(made)[0]), "explorer-matching") is None


@pytest.mark.full
def test_outcomes_and_values_are_links_that_filter(client: Client, made: TrialsWorld) -> None:
    for address in addresses(made):
        page = read(client, address)
        link = re.search(r'<a href="([^"]+)" data-outcome="compile error"', page)
        assert link
        kept = data_of(read(client, html.unescape(link[1])), "explorer-matching")
        twin = json.loads(read(client, f"{address}.json"))["explorer"]
        failed = [one["row"] for one in twin["trials"] if one["state"] == "compile error"]
        assert sorted(kept) == sorted(failed) and failed
        slices = page.partition('id="slices"')[2].partition("</table>")[0]
        link = re.search(r'<a href="([^"]+)"[^>]*>column</a>', slices)
        assert link
        kept = data_of(read(client, html.unescape(link[1])), "explorer-matching")
        states = {one["state"] for one in twin["trials"]}  # others have no kernel, and no row
        assert len(kept) == sum(
            value["group"]["n"]
            + sum(count for state, count in value["group"]["others"].items() if state in states)
            for one in twin["slices"]
            if one["name"] == "layout"
            for value in one["values"]
            if value["value"] == "column"
        )


def test_a_run_of_several_nodes_shows_one_at_a_time(client: Client) -> None:
    made = make_trials(nodes=2)
    address = made.run.get_absolute_url()
    twin = json.loads(read(client, f"{address}.json"))["explorer"]
    assert (twin["node"], twin["nodes"]) == ("op0", ["op0", "op1"])
    other = json.loads(read(client, f"{address}.json?of=op1"))["explorer"]
    assert other["node"] == "op1" and len(other["trials"]) == 2
    assert other["importance"]["missing"].startswith("2 trials have a time")
    assert data_of(read(client, address), "explorer-data")["node"] == "node==op0"
    assert "The run has no candidates for op9." in read(client, f"{address}?of=op9")


def test_an_open_run_brings_its_plots_anew(client: Client) -> None:
    made = make_trials(state=State.RUNNING)
    page = read(client, made.run.get_absolute_url())
    part = client.get(made.run.get_absolute_url(), headers={"HX-Request": "true"}).content.decode()
    for name in ("explorer-trials", "explorer-data"):
        assert data_of(part, name) == data_of(page, name)
    assert part.count('hx-swap-oob="true"') == 5 and "data-plot" not in part


def test_parameters_that_are_none_are_reported(client: Client, made: TrialsWorld) -> None:
    for address in addresses(made):
        page = read(client, f"{address}?x=nothing&colour=nope&cell=worst")
        assert "No varying parameter is named nothing." in page
        assert "No varying parameter is named nope." in page
        assert "Unknown cell value: worst." in page


@pytest.mark.full
def test_the_pages_need_as_many_queries_for_many_trials_as_for_few(
    client: Client, settings: Any
) -> None:
    """As they are, all of the ledger, and their twins."""
    settings.PAGES_KEPT_BYTES = 0
    counts = []
    for made in (make_trials(), make_trials(rounds=5)):
        node, run = addresses(made)
        for address in (node, run, f"{run}?show=all", f"{run}.json", f"{node}.json"):
            # What is asked for once has been.
            assert client.get(address).status_code == 200
            counts.append(queries_of(client.get, address))
    assert_steady(counts[:5], counts[5:], usual=[20, 11, 11, 8, 17])


def test_what_many_trials_share_is_read_once(client: Client) -> None:
    """A run with its node and problem comes once, not with each of its candidates."""
    made = make_trials(rounds=2)
    page = run_page(made.run.pk)
    assert len(page.ledger) == 98
    tasks = {id(row.task) for row in _candidates(made.run.pk)}
    assert len(tasks) == 1
    found = [row for row in _candidates(made.run.pk) if row.result is not None]
    assert len({id(row.result.environment) for row in found if row.result}) == 1
