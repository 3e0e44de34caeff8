"""What pages are told while work goes on: how far a graph is, what an import came to."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts
from codegen_app.workers.models import State
from scheduler import samples
from scheduler.frontends import pt2
from tests.app import factories
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


def progress(client: Client, graph: Graph) -> str:
    page = " ".join(client.get(graph.get_absolute_url()).content.decode().split())
    return page.partition('<div id="graph-progress"')[2].partition("</div>")[0]


def test_an_import_by_the_pages_script_is_told_where_its_graph_is(tuner: Client) -> None:
    file = SimpleUploadedFile("a model.pt2", samples.path("gpt2_2layer").read_bytes())
    answer = tuner.post("/import", {"file": file}, headers=JSON)
    graph = Graph.objects.get()
    assert (answer.status_code, answer.json()) == (
        201,
        {"url": graph.get_absolute_url(), "new": True},
    )
    again = SimpleUploadedFile("a model.pt2", samples.path("gpt2_2layer").read_bytes())
    assert tuner.post("/import", {"file": again}, headers=JSON).json()["new"] is False
    page = tuner.get(graph.get_absolute_url()).content.decode()
    assert "already imported" in page, "the page that opens says so, whoever asked for it"


def test_one_of_several_models_in_a_file_is_imported_by_its_name(tuner: Client) -> None:
    folder = samples.path("gpt2_2layer").parent
    both = io.BytesIO()
    with zipfile.ZipFile(both, "w") as archive:
        for name, sample in (("encoder", "resnet_small"), ("decoder", "gpt2_2layer")):
            with zipfile.ZipFile(folder / f"{sample}.pt2") as one:
                (member,) = (each for each in one.namelist() if each.endswith("models/model.json"))
                archive.writestr(f"m/models/{name}.json", one.read(member))

    def sent(**more: str) -> Any:
        file = SimpleUploadedFile("two.pt2", both.getvalue())
        return tuner.post("/import", {"file": file, **more}, headers=JSON)

    several = sent()
    (line,) = several.json()["errors"]
    told = "two.pt2: contains the models 'decoder', 'encoder': choose one by its name"
    assert (several.status_code, line["text"]) == (422, told)
    assert sent(model_name="other").status_code == 422
    assert not Graph.objects.exists()
    for name, targets in (("encoder", "aten.conv2d.default"), ("decoder", "aten.addmm.default")):
        assert sent(model_name=name).status_code == 201
        graph = Graph.objects.get(name=f"two:{name}")
        assert graph.nodes.filter(target=targets).exists()
        assert pt2.read(artifacts.local_file(graph.file, ".pt2")).digest == graph.digest
    assert 'name="model_name"' in tuner.get("/import").content.decode()


@pytest.mark.parametrize("name", ["my model (v2).pt2", "Прогон.pt2", "model.pt2"])
def test_an_error_names_the_file_as_its_owner_does(tuner: Client, name: str) -> None:
    answer = tuner.post("/import", {"file": SimpleUploadedFile(name, b"no archive")}, headers=JSON)
    assert answer.status_code == 422
    (line,) = answer.json()["errors"]
    assert line["field"] == "file"
    assert line["text"].startswith(f"{name}: ")
    page = tuner.post("/import", {"file": SimpleUploadedFile(name, b"no archive")})
    assert f"{name}: " in page.content.decode()
    missing = tuner.post("/import", {}, headers=JSON)
    assert missing.json() == {"errors": [{"field": "file", "text": "Choose a file."}]}


def test_the_import_has_its_twin(tuner: Client, world: World) -> None:
    page = tuner.get("/import").content.decode()
    assert '<link rel="alternate" type="application/json" href="/import.json">' in page
    assert f'id="graph-{world.graph.pk}"' in page
    twin = tuner.get("/import.json").json()
    assert [graph["name"] for graph in twin["graphs"]] == ["tiny"]


def test_the_overview_has_its_twin_by_either_address(reader: Client, world: World) -> None:
    assert 'href="/overview.json"' in reader.get("/").content.decode()
    assert reader.get("/overview.json").json()["summary"]["ranking"]["name"] == "tiny"


def test_a_graph_says_how_far_it_is_and_looks_for_news_while_it_is_open(
    reader: Client, world: World
) -> None:
    queued = factories.graph(name="fresh")
    text = progress(reader, queued)
    assert "queued for preparation" in text
    assert re.match(r' data-live="3"', text)
    assert "data-live=" not in progress(reader, world.graph)
    assert "1 of 1" in progress(reader, world.graph)
    build = Build.objects.get(kernel=world.kernels[0], target="gfx942")
    factories.build(kernel=build.kernel, target="gfx942", flags=["-O1"])
    text = progress(reader, world.graph)
    assert "data-live=" in text
    assert 'compiled for gfx942</span> <span class="mono">1 of 2' in text
    (gfx1100, gfx942) = graph_page(world.graph.pk).builds
    assert (gfx1100.open, gfx942.open, gfx942.total) == (0, 1, 2)
    Graph.objects.filter(pk=queued.pk).update(
        state=State.REJECTED, stage="rule", reason="an op that is not known"
    )
    assert "not prepared: rejected" in progress(reader, queued)
    assert "data-live=" not in progress(reader, queued)


@pytest.mark.parametrize("address", ["/", "/graphs", "/kernels", "/runs", "/import"])
def test_lists_look_for_news(tuner: Client, world: World, address: str) -> None:
    page = tuner.get(address).content.decode()
    region = page.partition('id="live"')[2]
    assert "data-live" in region.partition(">")[0]
    assert '<table class="grid" id="' in region
    again = tuner.get(address, headers={"HX-Request": "true"}).content.decode()
    assert 'id="live"' in again
