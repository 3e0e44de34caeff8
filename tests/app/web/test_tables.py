"""Tables of pages: sorted, filtered and with the columns that the address asks for."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.test import Client

from codegen_app.kernels.models import Build
from codegen_app.tuning.models import Environment, Selection
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.pages.run.candidate_columns import columns
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.django_db


def body(client: Client, **query: object) -> str:
    answer = client.get(f"/kernels?{urlencode(query, doseq=True)}")
    assert answer.status_code == 200
    return answer.content.decode()


def column(page: str, place: int) -> list[str]:
    rows = re.findall(r"<tr>(<td.*?)</tr>", page, re.DOTALL)
    cells = [re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [unescape(re.sub(r"<[^>]+>|\s+", " ", row[place])).strip() for row in cells]


def test_kernels_are_listed_with_what_they_cost_and_take(reader: Client, world: World) -> None:
    page = reader.get("/kernels.json").json()
    rows = {row["name"]: row for row in page["kernels"]}
    chosen, slower = (rows[kernel.name] for kernel in world.kernels)
    assert page["ranking"]["name"] == world.graph.name
    assert (chosen["median_ns"], chosen["total_ns"], chosen["calls"]) == (120_000, 120_000, 1)
    assert chosen["share"] == 1.0, "it serves the only node that was measured"
    assert (chosen["device"], chosen["target"]) == ("CPU emulation", "gfx942")
    assert chosen["resource_use"]["registers"] > 0
    assert 0 < chosen["resource_use"]["waves"] <= chosen["resource_use"]["max_waves"] == 8
    assert (slower["share"], slower["calls"]) == (None, None)
    assert list(rows) == [chosen["name"], slower["name"]], "what costs most comes first"


def test_shares_are_of_one_graph(reader: Client, world: World, code_cache: Path) -> None:
    """A kernel that two graphs use has the share, and the calls, of the graph that is shown: the
    overview's unless another is selected. Of all graphs there are none."""
    larger = make_world(code_cache, "larger", layers=3).graph
    name = world.kernels[0].name
    for graph, calls in ((None, 3), (world.graph.pk, 1), (larger.pk, 3)):
        address = "/kernels.json" + (f"?graph={graph}" if graph else "")
        page = reader.get(address).json()
        (row,) = (row for row in page["kernels"] if row["name"] == name)
        assert (row["calls"], row["share"]) == (calls, 1.0)
        assert row["total_ns"] == page["ranking"]["total_ns"] == calls * 120_000.0
    page = reader.get("/kernels.json?graph=0").json()
    assert page["ranking"] is None
    assert {(row["calls"], row["share"]) for row in page["kernels"]} == {(None, None)}
    html = reader.get("/kernels?graph=0").content.decode()
    assert re.findall(r'<th scope="col".*?>\s*<a[^>]*>(\w+)', html)[:2] == ["Kernel", "Median"]


def test_only_the_candidates_of_the_graph_are_listed(reader: Client, world: World) -> None:
    other = factories.kernel()
    names = {row["name"] for row in reader.get("/kernels.json").json()["kernels"]}
    assert names == {kernel.name for kernel in world.kernels}
    every = {row["name"] for row in reader.get("/kernels.json?graph=0").json()["kernels"]}
    assert every == names | {other.name}


def test_a_target_may_be_chosen_for_registers(reader: Client, world: World) -> None:
    page = reader.get("/kernels.json?target=gfx1100").json()
    assert page["targets"] == ["gfx1100", "gfx942"]
    assert {row["target"] for row in page["kernels"]} == {"gfx1100", ""}


def test_registers_are_those_of_the_target_of_the_times(reader: Client, world: World) -> None:
    """Even if no kernel has been built for it: the columns without a value are left out."""
    Environment.objects.update(target="sm_90", emulated=False)
    Selection.objects.update(target="sm_90")
    page = reader.get("/kernels.json").json()
    assert (page["bucket"]["target"], page["target"]) == ("sm_90", "sm_90")
    assert page["targets"] == ["gfx1100", "gfx942", "sm_90"]
    assert {row["resource_use"] for row in page["kernels"]} == {None}
    html = reader.get("/kernels").content.decode()
    assert re.search(r'<option value="sm_90"\s+selected>', html)
    names = re.findall(r'<th scope="col".*?>\s*<a[^>]*>(\w+)', html)
    assert "Registers" not in names and "Configuration" in names


def test_an_imported_build_keeps_its_figures_while_it_is_compiled_here(
    reader: Client, world: World
) -> None:
    before = reader.get("/kernels.json?target=gfx942").json()["kernels"]
    Build.objects.filter(target="gfx942").update(state=State.QUEUED)
    after = reader.get("/kernels.json?target=gfx942").json()["kernels"]
    assert [row["resource_use"] for row in after] == [row["resource_use"] for row in before]
    assert any(row["resource_use"] for row in after)
    assert all(build.has_figures for build in Build.objects.filter(target="gfx942"))


def test_the_list_sorts_by_any_column_and_says_so(reader: Client, world: World) -> None:
    up, down = body(reader, sort="name"), body(reader, sort="-name")
    assert column(up, 0) == column(down, 0)[::-1] == sorted(k.name for k in world.kernels)
    assert re.search(r'<th scope="col" aria-sort="descending"><a href="/kernels\?sort=name"', down)
    assert up.count("aria-sort") == 1
    by_registers = body(reader, sort="-registers", target="gfx942")
    heading = re.search(r'class="num" aria-sort="descending"><a href="(.*?)"', by_registers)
    assert heading
    assert heading[1] == "/kernels?target=gfx942&amp;sort=registers"


def test_the_list_is_filtered_and_the_choice_of_columns_is_in_the_address(
    reader: Client, world: World
) -> None:
    page = body(reader, filter="time<=120 linear", column=["time", "name", "waves"])
    assert column(page, 0) == [world.kernels[0].name]
    assert re.findall(r'<th scope="col".*?>\s*<a[^>]*>(\w+)', page) == ["Kernel", "Median", "Waves"]
    assert "1 of 2 rows" in " ".join(page.split())
    nothing = body(reader, filter="time>1e9")
    assert "No row matches “time&gt;1e9”." in nothing


def test_what_the_table_does_not_have_is_said_and_left_out(reader: Client, world: World) -> None:
    page = body(reader, sort="-speed", filter="time<fast", column=["nope"])
    assert "sort: unknown column speed. Columns: name, calls, total, share" in page
    assert "filter: time takes a number" in page
    assert "column: unknown column nope" in page
    assert len(column(page, 0)) == 2


def test_the_rows_that_match_are_there_as_tsv(reader: Client, world: World) -> None:
    answer = reader.get("/kernels?filter=linear&sort=time&column=name&column=time&as=tsv")
    assert answer.headers["Content-Type"].startswith("text/tab-separated-values")
    lines = answer.content.decode().rstrip("\n").split("\n")
    assert lines == [
        "Kernel\tMedian [µs]",
        f"{world.kernels[0].name}\t120.0",
        f"{world.kernels[1].name}\t" + lines[2].partition("\t")[2],
    ]


@pytest.mark.full(but=["node"])
@pytest.mark.parametrize("which", ["node", "run"])
def test_candidates_are_sorted_filtered_and_copied_where_they_are_compared(
    which: str, reader: Client, world: World
) -> None:
    address = (world.nodes[0] if which == "node" else world.run).get_absolute_url()
    fast, slow = (kernel.name for kernel in world.kernels)

    def order(query: str) -> list[str]:
        page = reader.get(f"{address}?{query}").content.decode()
        table = page[
            page.index(
                '<table class="grid" id="' + ("candidates" if which == "node" else "ledger")
            ) :
        ]
        return list(dict.fromkeys(re.findall(r'href="/kernels/(rocm_\w+)', table)))

    assert order("sort=-kernel") == sorted((fast, slow), reverse=True)
    assert order("sort=median") == [fast, slow], "what was not measured is last"
    assert order("filter=median<121") == [fast]
    assert order("filter=median<121 registers>0 occupancy<=100") == [fast]
    page = reader.get(f"{address}?column=kernel&column=median&column=registers").content.decode()
    assert page.count('<th scope="col"') - page.count('id="profile"') >= 3
    assert "Error / bound</a>" not in page, "it was not chosen"
    tsv = reader.get(f"{address}?as=tsv&column=kernel&column=median&sort=median").content.decode()
    assert tsv.split("\n")[:2] == ["Kernel\tMedian [µs]", f"{fast}\t120.0"]
    assert f"{slow}\t\n" in tsv


def test_a_parameter_may_be_called_as_a_column_is(world: World) -> None:
    page = node_page(world.nodes[0].pk)
    keys = [column.key for column in columns(page, ["block", "waves"])]
    assert "block" in keys
    assert {"waves", "config.waves"} <= set(keys)
    assert len(keys) == len(set(keys))


def test_runs_are_sorted_and_filtered(reader: Client, world: World) -> None:
    page = reader.get("/runs?filter=left<1+cpu&sort=-measured").content.decode()
    assert f'id="run-{world.run.pk}"' in page
    assert 'aria-sort="descending"' in page
    nothing = reader.get("/runs?filter=state=done").content.decode()
    assert "No run matches “state=done”." in nothing
    text = reader.get("/runs?as=tsv&column=run&column=measured").content.decode()
    assert text == f"Run\tMeasured\n{world.run.pk}\t1\n"
    node = reader.get(world.nodes[0].get_absolute_url()).content.decode()
    assert "?sort=-measured" not in node, "the runs of a node are no table of the address"


def test_where_a_filter_leaves_no_row_every_table_says_so_in_the_same_words(
    reader: Client, world: World
) -> None:
    graph, node, run = world.graph, world.nodes[0], world.run
    for address, what in {
        "/graphs": "graph",
        "/runs": "run",
        "/selections": "selection",
        "/devices": "environment",
        "/kernels": "row",
        node.get_absolute_url(): "candidate",
        run.get_absolute_url(): "candidate",
        graph.get_absolute_url(): "node",
        f"{graph.get_absolute_url()}?view=nodes": "node",
    }.items():
        joined = "&" if "?" in address else "?"
        page = reader.get(f"{address}{joined}filter=none-such").content.decode()
        assert page.count(f"<p>No {what} matches “none-such”.</p>") == 1, address
