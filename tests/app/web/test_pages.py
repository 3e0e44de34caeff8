"""The pages as their readers get them: everything there, escaped, labelled, and in few queries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.graphs.origins import own_frame
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.graphs.pages.graphs.query import graph_list
from codegen_app.graphs.pages.ops.query import op_list
from codegen_app.kernels.models import Build, Packing
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.external_kernel.query import external_kernel_page
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.kernels.pages.kernels.query import kernel_list
from codegen_app.site.pages.figures.query import figures_page
from codegen_app.site.pages.imports.query import import_page
from codegen_app.site.pages.overview.query import overview
from codegen_app.site.pages.search.query import search
from codegen_app.site.urls import urlpatterns
from codegen_app.tracking.models import Alert, Budget, Change, PatternRule
from codegen_app.tracking.pages.alert.query import alert_page
from codegen_app.tracking.pages.alerts.query import AlertFilter, alert_list, alert_table
from codegen_app.tracking.pages.change.query import change_page
from codegen_app.tracking.pages.compare_revisions.query import side_choices_page
from codegen_app.tracking.pages.history.point import point_page
from codegen_app.tracking.pages.history.query import history_page
from codegen_app.tracking.pages.rules.query import rule_list, rule_page
from codegen_app.tracking.pages.series.query import Filters, series_list, series_table
from codegen_app.tracking.pages.team.query import budget_page, team_page
from codegen_app.tracking.pages.thresholds.query import thresholds_page
from codegen_app.tuning.models import Candidate, TuningRun
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.pages.packing.query import packing_page
from codegen_app.tuning.pages.run.query import run_page
from codegen_app.tuning.pages.runs.query import run_list
from codegen_app.tuning.pages.selections.query import selections
from codegen_app.web.pages.glossary.query import glossary
from codegen_app.web.server import rules
from codegen_app.web.tables import TableQuery
from codegen_app.workers.models import State, Worker
from codegen_app.workers.pages.devices.query import devices
from scheduler import samples
from scheduler.lowering.ops.table import table
from tests.app import track_factories
from tests.app.factories import environment
from tests.support.foreign_kernels import looked_at
from tests.support.inlined import HEADER, inlined
from tests.support.pages_world import World, make_world
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


def builds_of(world: World) -> list[int]:
    """Two builds, to compare."""
    builds = Build.objects.filter(kernel__in=world.kernels).order_by("pk")
    return list(builds.values_list("pk", flat=True)[:2])


def change_of(world: World) -> Change:
    """A change of a series of the world's own problem."""
    problem, now = world.nodes[0].problem, timezone.now()
    found = Change.objects.filter(series__own_problem=problem).first()
    fields = {"problem": str(problem), "own_problem": problem, "first_at": now, "last_at": now}
    return found or track_factories.change(series=track_factories.series(points=1, **fields))


def alert_of() -> Alert:
    """An alert with two changes."""
    return Alert.objects.first() or track_factories.regression("linear", "gelu")


def rule_of() -> PatternRule:
    return PatternRule.objects.first() or track_factories.rule(problem=["linear*"])


def budget_of() -> Budget:
    return Budget.objects.first() or track_factories.budget(problem=["linear*"])


def packing_of(world: World) -> dict[str, Any]:
    return {"pk": world.graph.pk, "graph": world.graph, "key": world.graph.digest, "kernels": 2}


def addresses(world: World) -> list[str]:
    return [
        "/",
        "/graphs",
        world.graph.get_absolute_url(),
        world.nodes[0].get_absolute_url(),
        "/kernels",
        world.kernels[0].get_absolute_url(),
        header_of(world),
        "/instructions/gfx942/v_mfma_f32_16x16x16_f16",
        "/runs",
        world.run.get_absolute_url(),
        "/devices",
        "/search?q=linear",
        "/selections",
        "/figures",
        "/glossary",
        "/ops",
        "/ops?words=fft&by=reference&core=only",
        Packing.objects.get_or_create(**packing_of(world))[0].get_absolute_url(),
        f"/compare?{urlencode({'build': builds_of(world)}, doseq=True)}",
        looked_at().get_absolute_url(),
        "/compare/revisions",
        "/series",
        change_of(world).series.get_absolute_url(),
        change_of(world).datum.get_absolute_url(),
        change_of(world).get_absolute_url(),
        "/api/v1/docs",
        f"/alerts/{track_factories.regression('gemm').pk}/actions",
        "/alerts",
        alert_of().get_absolute_url(),
        f"/series/{change_of(world).series_id}/thresholds?try=1&least_effect=2",
        "/rules?try=1&decides=thresholds&least_effect=5",
        rule_of().get_absolute_url(),
        "/team",
        budget_of().get_absolute_url(),
    ]


def header_of(world: World) -> str:
    """A header that a build has instructions from."""
    build = inlined(world.kernels[0].builds.get(target="gfx942"))
    return reverse("header", args=[world.kernels[0].name, build.pk, HEADER])


class Inline(HTMLParser):
    """Collects what the Content-Security-Policy would refuse, and links to other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or "style" in given or any(name.startswith("on") for name in given):
            self.found.append(f"{tag} {given}")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.found.append(f"{tag} {given}")
        for name in ("href", "src", "action"):
            if re.match(r"\w+:|//", given.get(name) or ""):
                self.found.append(f"{tag} {given}")


def test_every_page_is_plain_html_that_the_policy_allows(reader: Client, world: World) -> None:
    for address in [*addresses(world), "/components"]:
        response = reader.get(address)
        assert response.status_code == 200, address
        inline = Inline()
        inline.feed(response.content.decode())
        assert inline.found == [], address


@pytest.mark.full
def test_every_page_has_a_json_twin_with_the_same_facts(reader: Client, world: World) -> None:
    for address in addresses(world):
        page = reader.get(address).content.decode()
        twin = re.search(r'<link rel="alternate" type="application/json" href="([^"]+)">', page)
        assert twin, address
        answer = reader.get(twin[1].replace("&amp;", "&"))
        assert answer["Content-Type"] == "application/json", address
        assert answer.json(), address
    name = world.kernels[0].name
    twin_of_kernel = reader.get(f"/kernels/{name}.json").json()
    assert twin_of_kernel["source"] == world.kernels[0].source
    assert {row["target"] for row in twin_of_kernel["builds"]} == {"gfx942", "gfx1100"}


def test_pages_with_forms_have_twins_for_who_may_fill_them_in(tuner: Client, world: World) -> None:
    node = world.nodes[0]
    has = {
        "/look": ("accepts", "limit_bytes", "kernels"),
        f"/retune?node={node.pk}": ("subjects", "targets", "most_runs"),
        "/import": ("limit_bytes", "graphs"),
    }
    for address, keys in has.items():
        path, _, query = address.partition("?")
        twin = f"{path}.json" + (f"?{query}" if query else "")
        assert f'href="{twin}"' in tuner.get(address).content.decode(), address
        assert set(keys) <= set(tuner.get(twin).json()), address
    [subject] = tuner.get(f"/retune.json?node={node.pk}").json()["subjects"]
    assert (subject["node"], subject["node_url"]) == (node.name, node.get_absolute_url())
    on = {one["name"]: one["is_measured"] for one in tuner.get("/retune.json").json()["targets"]}
    assert on["cpu"] is True and on["gfx942"] is False


READERS: list[tuple[Callable[..., Any], Callable[[World], tuple[Any, ...]]]] = [
    (overview, lambda world: ()),
    (graph_list, lambda world: ()),
    (graph_page, lambda world: (world.graph.pk,)),
    (node_page, lambda world: (world.nodes[0].pk,)),
    (kernel_page, lambda world: (world.kernels[0].name, None, None)),
    (import_page, lambda world: (AnonymousUser(),)),
    (run_list, lambda world: ()),
    (run_page, lambda world: (world.run.pk,)),
    (devices, lambda world: ()),
    (kernel_list, lambda world: (TableQuery(),)),
    (packing_page, lambda world: (world.graph.pk,)),
    (external_kernel_page, lambda world: (looked_at().pk,)),
    (side_choices_page, lambda world: ()),
    (compare_page, lambda world: (builds_of(world), 1)),
    (search, lambda world: ("linear",)),
    (selections, lambda world: ()),
    (figures_page, lambda world: ()),
    (glossary, lambda world: ()),
    (op_list, lambda world: ("softmax",)),
    (series_list, lambda world: (Filters(problem=change_of(world).series.own_problem_id or 0),)),
    (
        series_table,
        lambda world: (
            Filters(problem=change_of(world).series.own_problem_id or 0),
            TableQuery(sort="latest"),
        ),
    ),
    (alert_list, lambda world: (AlertFilter(state="all"),)),
    (alert_table, lambda world: (AlertFilter(state="all"), TableQuery(sort="ratio"))),
    (alert_page, lambda world: (alert_of().pk,)),
    (thresholds_page, lambda world: (change_of(world).series_id,)),
    (history_page, lambda world: (change_of(world).series_id,)),
    (point_page, lambda world: (change_of(world).series_id, change_of(world).datum_id)),
    (change_page, lambda world: (change_of(world).pk,)),
    (rule_list, lambda world: ()),
    (rule_page, lambda world: (rule_of().pk,)),
    (team_page, lambda world: ("ada",)),
    (budget_page, lambda world: (budget_of().pk,)),
]


@pytest.mark.full(but=["overview"])
@pytest.mark.parametrize(("read", "arguments"), READERS, ids=[f.__name__ for f, _ in READERS])
def test_queries_are_as_many_whatever_the_number_of_rows_and_no_more_than_is_said(
    read: Callable[..., Any],
    arguments: Callable[[World], tuple[Any, ...]],
    code_cache: Path,
) -> None:
    said = re.search(r"\((\d+|no) quer(?:y|ies)", read.__doc__ or "")
    assert said, "a page's function says in its docstring how many queries it makes"
    counts = []
    for name, layers, candidates in (("small", 1, 1), ("larger", 7, 6)):
        world = make_world(code_cache, name, layers=layers, candidates=candidates)
        Packing.objects.create(**packing_of(world))
        given = arguments(world)
        counts.append([queries_of(read, *given)])
        assert read(*given)
    assert_steady(*counts, usual=[0 if said[1] == "no" else int(said[1])])


def test_every_page_with_a_twin_is_among_those_that_are_tried(world: World) -> None:
    twins = {
        each.name.removesuffix("_json")
        for each in urlpatterns
        if each.name is not None
        and each.name.endswith("_json")
        and not rules.RULES.get(each.name, rules.PAGE).permission  # those have tests of their own
    }
    tried = {resolve(address.partition("?")[0]).url_name for address in addresses(world)}
    assert tried == twins


def test_an_empty_site_says_what_is_missing_and_how_to_get_it(reader: Client) -> None:
    for address, command in (
        ("/", "kiln manage import_graph"),
        ("/graphs", "kiln manage import_graph"),
        ("/kernels", "kiln manage import_graph"),
        ("/runs", "kiln manage retune"),
        ("/compare/revisions", "kiln_client push"),
        ("/devices", "kiln manage retune"),
        ("/series", "kiln_client push"),
    ):
        page = reader.get(address).content.decode()
        assert command in page, address


@pytest.mark.full
def test_text_from_models_and_kernels_stays_text(reader: Client, world: World) -> None:
    evil = '</span><script>alert("x")</script><img src=x onerror=y>'
    Graph.objects.update(name=evil)
    world.nodes[0].graph_nodes.update(
        module_path=evil, frames=[{"file": evil, "line": 1, "function": evil, "code": evil}]
    )
    Candidate.objects.filter(state=State.REJECTED).update(reason=evil)
    Build.objects.update(
        log=evil,
        diagnostics=[{"severity": "warning", "line": 3, "column": 1, "message": f'"{evil}'}],
    )
    kernel = world.kernels[0]
    kernel.source = f"// {evil}\n{kernel.source}"
    kernel.save()
    for address in addresses(world):
        page = reader.get(address).content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address


@pytest.mark.full
def test_emulated_times_are_labelled_wherever_they_stand(reader: Client, world: World) -> None:
    for address in addresses(world):
        if address.startswith("/look/"):
            continue  # modelled figures alone, of any size
        # Titles have exact figures of series too, which are of another device.
        page = re.sub(r'title="[^"]*"', "", reader.get(address).content.decode())
        if re.search(r"\b12\d\.\d\b", page):
            assert "tag emulated" in page, address
    assert "120.0" in reader.get(world.run.get_absolute_url()).content.decode()


def test_a_node_shows_rejected_wrong_and_chosen_candidates(reader: Client, world: World) -> None:
    page = reader.get(world.nodes[0].get_absolute_url()).content.decode()
    assert "LDS: 98304 B are more than the 65536 B of gfx942" in page
    assert "check: wrong: error 3.1e-02 is over the bound 1.2e-05" in page
    assert "★" not in page  # the glyph is the style sheet's
    assert 'class="status best"' in page
    assert "model/mlp.py:10 in forward" in page


def test_the_line_shown_is_the_models_own_and_not_torchs() -> None:
    model = {"file": "/home/x/model.py", "line": 7, "function": "forward", "code": "self.up(x)"}
    torch = {"file": "/opt/torch/nn/modules/linear.py", "line": 134, "function": "f", "code": ""}
    assert own_frame([model, torch]) == model
    assert own_frame([torch]) == torch
    assert own_frame([]) is None


def test_the_chart_of_candidates_keeps_its_axes_in_the_address(
    reader: Client, world: World
) -> None:
    address = world.nodes[0].get_absolute_url()

    def figure(query: str) -> Any:
        page = reader.get(address + query).content.decode()
        found = re.search(r'<div id="explorer-trials">(.*?)</div>', page, re.DOTALL)
        assert found
        return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">"))

    plain = figure("")
    assert plain["data"][0]["customdata"] == [0]  # one is measured
    assert plain["layout"]["yaxis"]["title"]["text"] == "emulated median, µs at s0=16"
    by_block = figure("?x=block&colour=block")
    assert [round(x) for x in by_block["data"][0]["x"]] == [0]
    assert by_block["layout"]["xaxis"]["ticktext"][0] == "64"
    assert by_block["data"][0]["name"] == "block=64 (1)"
    assert "template" not in by_block["layout"]
    title = figure("?x=nothing")["layout"]["xaxis"]["title"]["text"]
    assert title.startswith("trial: order")


def test_emulated_devices_are_one_line(reader: Client, world: World) -> None:
    worker = Worker.objects.get()
    worker.devices = [
        {"id": f"cpu-{n}", "name": "some CPU", "target": "cpu", "emulated": True} for n in range(6)
    ] + [{"id": "rocm:0", "name": "MI300X", "target": "gfx942", "emulated": False}]
    worker.save()
    html = " ".join(reader.get("/").content.decode().split())
    assert 'CPU emulation <span class="mono">\N{MULTIPLICATION SIGN}6</span>' in html
    assert 'MI300X <span class="note mono">rocm:0</span>' in html
    assert "some CPU" not in html


def test_the_devices_page_says_whose_code_a_gpu_takes_and_why_nothing_was_read(
    reader: Client, world: World
) -> None:
    readings = "none: NVML (libnvidia-ml.so.1) is not installed, or not usable"
    attributes = {"architecture": "sm_87", "target": "sm_86", "readings": readings}
    name = "Orin"
    environment(device="cuda:0", device_name=name, target="sm_86", attributes=attributes)
    html = " ".join(reader.get("/devices").content.decode().split())
    row = html.partition(name)[2].partition("</tr>")[0]
    assert "sm_87, which runs code for sm_86" in row
    assert f"readings: {readings}" in row


def test_the_devices_page_says_what_of_the_fence_is_missing_on_each_host(
    reader: Client, world: World
) -> None:
    note = "connections are possible: no libseccomp"
    parts = [{"name": "network", "in_force": False, "note": note, "needed": True}]
    world_worker = Worker.objects.get()
    world_worker.host, world_worker.fence, world_worker.seen_at = "old-host", parts, timezone.now()
    world_worker.stopped_at = None
    world_worker.save()
    html = " ".join(reader.get("/devices").content.decode().split())
    table = html.partition('id="fence"')[2].partition("</table>")[0]
    assert "web processes on" in table
    assert "workers on old-host" in table
    assert note in table
    assert table.count(">missing<") >= 1
    fences = reader.get("/devices.json").json()["fences"]
    assert {"where": "workers on old-host", "parts": parts} in fences


def test_what_is_not_there_is_not_found(reader: Client) -> None:
    for address in ("/graphs/9", "/nodes/9", "/kernels/nothing", "/runs/9", "/graphs/9.json"):
        assert reader.get(address).status_code == 404, address


def test_the_overview_counts_the_builds_of_each_target(world: World) -> None:
    (row,) = overview().graphs
    assert [(b.target, b.done, b.rejected, b.open) for b in row.builds] == [
        ("gfx1100", 1, 0, 0),
        ("gfx942", 1, 0, 0),
    ]
    assert (row.kernels, str(row.measured), row.measured.emulated) == (2, "1 of 1", True)


def test_a_live_run_asks_again_and_a_closed_one_does_not(reader: Client, world: World) -> None:
    address = world.run.get_absolute_url()
    inner = reader.get(address, headers={"HX-Request": "true"}).content.decode()
    assert re.match(r'<div id="live"\s+hx-get=', inner.lstrip())
    assert "<html" not in inner
    task = world.run.tasks.get()
    task.state, task.lease_until = State.CANCELLED, None
    task.save()
    TuningRun.objects.update(state=State.DONE, finished_at=task.created_at)
    assert "hx-get" not in reader.get(address).content.decode()


def test_cancelling_from_the_page_is_recorded(tuner: Client, world: World) -> None:
    tuner.post(reverse("cancel_run", args=[world.run.pk]), {"why": "too slow"})
    world.run.refresh_from_db()
    assert world.run.state == State.CANCELLED
    entry = AuditEntry.objects.get(action="cancel")
    assert (entry.actor.get_username(), entry.why) == ("tuner", "too slow")


def test_importing_a_model_leads_to_its_graph(tuner: Client) -> None:
    path = samples.path("gpt2_2layer")
    file = SimpleUploadedFile("../../gpt2_2layer.pt2", path.read_bytes())
    answer = tuner.post("/import", {"file": file}, follow=True)
    graph = Graph.objects.get()
    assert (graph.name, answer.redirect_chain[-1][0]) == ("gpt2_2layer", f"/graphs/{graph.pk}")
    assert "appear when the graph is prepared" in answer.content.decode()
    again = SimpleUploadedFile("other.pt2", path.read_bytes())
    answer = tuner.post("/import", {"file": again}, follow=True)
    assert "already imported" in answer.content.decode()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"import os"])
def test_a_file_that_is_no_model_is_one_clear_line(tuner: Client, content: bytes) -> None:
    file = SimpleUploadedFile("model.pt2", content)
    answer = tuner.post("/import", {"file": file})
    assert answer.status_code == 422
    assert Graph.objects.count() == 0
    page = answer.content.decode()
    assert page.count('class="field-error" id="id_file_error" role="alert"') == 1
    assert not content or "model.pt2: " in page
    assert "alert" in page


def test_a_parameter_that_is_none_is_reported_and_left_out(reader: Client, world: World) -> None:
    for address, line in (
        (f"{world.kernels[0].get_absolute_url()}?build=x", "build: not an integer"),
        (f"{world.nodes[0].get_absolute_url()}?sizes=-1", "sizes: not an integer"),
        ("/kernels?start=9e9", "start: not an integer"),
    ):
        answer = reader.get(address)
        assert answer.status_code == 200, address
        assert line in answer.content.decode(), address


def test_the_list_of_graph_nodes_says_what_a_node_writes(reader: Client, world: World) -> None:
    node = world.graph.nodes.order_by("position")[0]
    given = {"name": "b_kept", "kind": "buffer", "source_name": "layers.<0>.kept"}
    world.graph.inputs = [*world.graph.inputs, {**given, "written_by": [node.name]}]
    world.graph.save()
    page = reader.get(f"{world.graph.get_absolute_url()}?view=nodes").content.decode()
    (row,) = re.findall(f'<tr id="node-{node.name}".*?</tr>', page, flags=re.S)
    assert "mutates layers.&lt;0&gt;.kept" in row
    assert page.count("mutates layers.") == 1


def test_ops_are_those_of_the_table_a_page_at_a_time(reader: Client) -> None:
    shown, start = [], 0
    while True:
        page = reader.get(f"/ops.json?start={start}").json()
        if not page["ops"]:
            break
        shown += page["ops"]
        start += len(page["ops"])
    assert [row["name"] for row in shown] == [row.name for row in table()]
    assert page["total"] == page["found"] == len(shown)
    first, last = (reader.get(f"/ops?start={at}").content.decode() for at in (0, start - 1))
    assert 'rel="next"' in first and 'rel="prev"' not in first
    assert 'rel="next"' not in last and 'rel="prev"' in last


def test_ops_are_narrowed_by_the_address(reader: Client) -> None:
    def named(query: str) -> set[str]:
        return {row["name"] for row in reader.get(f"/ops.json?{query}").json()["ops"]}

    assert "aten.mm" in named("words=mm") and "aten.add" not in named("words=mm")
    assert named("words=MATMUL+mm") == named("words=mm+matmul") < named("words=mm")
    assert named("words=aten.add.tensor") == {"aten.add"}
    assert "aten.mm" in named("words=mm&core=only") and "aten.matmul" not in named("core=only")
    kernels, left = named("words=fft&by=kernel"), named("words=fft&by=reference")
    assert "aten.fft_fftshift" in kernels and "aten._fft_c2c" in left and not kernels & left


def test_ops_are_sorted_filtered_and_copied_by_their_columns(reader: Client) -> None:
    def listed(query: str) -> list[str]:
        twin = [row["name"] for row in reader.get(f"/ops.json?{query}").json()["ops"]]
        page = reader.get(f"/ops?{query}").content.decode()
        assert re.findall(r'<tr id="([^"]+)"', page) == twin
        return twin

    rows = {row.name: row for row in table()}
    most = listed("sort=-samples")
    assert [rows[name].samples for name in most] == sorted(
        (rows[name].samples for name in rows), reverse=True
    )[: len(most)]
    assert listed("sort=-op")[0] == max(rows, key=str.lower)
    assert listed("filter=aten.add.tensor") == ["aten.add"]
    few = listed("filter=core=core+samples>100&by=kernel")
    assert few
    assert all(rows[name].core and rows[name].samples > 100 for name in few)
    assert set(listed("words=fft&core=only&sort=op")) == {"aten._fft_c2r", "aten._fft_r2c"}
    assert listed("filter=c2r&words=fft&core=only") == ["aten._fft_c2r"]
    page = reader.get("/ops?filter=samples>1e9").content.decode()
    assert "No op matches “samples&gt;1e9”." in page
    assert f"0 of {len(rows)} rows" in " ".join(page.split())
    text = reader.get("/ops?words=_fft_c2c&as=tsv&column=op&column=samples").content.decode()
    samples = rows["aten._fft_c2c"].samples or ""
    assert text == f"Op\tSamples\naten._fft_c2c\t{samples}\n"
    kept = reader.get("/ops?by=kernel&sort=-samples&column=op").content.decode()
    assert '<input type="hidden" name="sort" value="-samples">' in kept
    assert "OpInfo entries</a>" not in kept, "it was not chosen"


def test_ops_say_why_one_is_left_to_the_reference_and_how_many_there_are(reader: Client) -> None:
    page = reader.get("/ops?words=_fft_c2c").content.decode()
    (row,) = (row for row in table() if row.name == "aten._fft_c2c")
    assert "reference only" in page and row.reason in page
    count = re.search(r'<span class="note">(.*?) ops', page, flags=re.S)
    assert count and re.sub(r"<[^>]+>|\s+", " ", count[1]).split() == ["1", "of", str(len(table()))]
    nothing = reader.get("/ops?words=nowhere&by=magic").content.decode()
    assert "No op matches “nowhere”" in nothing
    assert "unknown value magic. Choices: kernel, refer" in nothing


def test_the_glossary_is_the_files_own(reader: Client) -> None:
    text = Path(settings.BASE_DIR, "docs", "glossary.md").read_text()
    subjects = reader.get("/glossary.json").json()["subjects"]
    terms = [row for subject in subjects for row in subject["terms"]]
    assert len(terms) == text.count("\n| ") - len(subjects)
    assert all(f"| {row['term']} | {row['meaning']} |" in text for row in terms)


# What a reader would have to guess: each has a word of the glossary in its place. "Cannot be said"
# is one of its terms.
WHIMSICAL = (
    r"\b(fate|wish|lost|apart|take away|taken away|(?<!cannot be )said|refused)\b|(?<![\w-])--[a-z]"
)


@pytest.mark.full
def test_pages_use_the_words_of_the_glossary(tuner: Client, world: World) -> None:
    """And name no flag of the command line."""
    Build.objects.filter(target="gfx1100").update(listing=None)
    for address in [*addresses(world), f"/retune?node={world.nodes[0].pk}", "/import"]:
        page = tuner.get(address).content.decode()
        shown = re.sub(r"<script.*?</script>|<style.*?</style>|<pre.*?</pre>", "", page, flags=re.S)
        shown = re.sub(r'<div class="codepane.*?</(?:section|main)>', "", shown, flags=re.S)
        text = " ".join([re.sub(r"<[^>]*>", " ", shown), *re.findall(r'title="([^"]*)"', shown)])
        assert re.findall(f"(?i){WHIMSICAL}", text) == [], address
