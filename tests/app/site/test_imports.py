"""The import page: a file is named before it is sent, and imported as what it is."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import ForeignKernel
from codegen_app.tracking.models import Batch, Datum, Series
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import State
from scheduler import samples
from scheduler.frontends.file_sample import SAMPLE_BYTES
from scheduler.results import file as results_file
from tests.app import factories
from tests.app.tracking.test_results import graph as graph_of_results  # noqa: F401
from tests.support import recorded
from tests.support.foreign_kernels import LAUNCH, LISTING

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
AUTOTUNE = b"AUTOTUNE mm(64x64, 64x64)\n  triton_mm_1 0.0051 ms 100.0%\n  mm 0.0061 ms 83.6%\n" + (
    b"SingleProcess AUTOTUNE benchmarking takes 0.1 seconds\n"
)


def recognized(client: Client, content: bytes, name: str = "file", **more: Any) -> Any:
    parts = {
        "head": SimpleUploadedFile("head", content[:SAMPLE_BYTES]),
        "tail": SimpleUploadedFile("tail", content[-SAMPLE_BYTES:]),
    }
    return client.post("/import/recognize", {"name": name, "size": len(content), **parts, **more})


def sent(client: Client, content: bytes, name: str = "file", **more: str) -> Any:
    file = SimpleUploadedFile(name, content)
    return client.post("/import", {"file": file, **more}, headers=JSON)


def problem(answer: Any) -> str:
    assert answer.status_code == 422
    (line,) = answer.json()["errors"]
    return str(line["text"])


def importer(client: Client) -> Client:
    user = User.objects.create_user("importer")
    user.user_permissions.add(Permission.objects.get(codename="import_graph"))
    client.force_login(user)
    return client


def test_a_file_is_named_by_its_first_and_last_bytes(tuner: Client) -> None:
    answer = recognized(tuner, b"\x08\x08\x12\x07pytorch").json()
    assert (answer["title"], answer["use"]) == ("This is an ONNX model.", "")
    assert answer["code"].endswith('torch.export.save(program, "model.pt2")')
    model = recognized(tuner, samples.path("gpt2_2layer").read_bytes()).json()
    assert (model["kind"], model["use"]) == ("pt2", "graph")
    assert recognized(tuner, b"").json()["kind"] == "empty"


@pytest.mark.parametrize("wrong", [{"size": -1}, {"size": "large"}, {"head": ""}, {"name": ""}])
def test_an_incomplete_sample_is_refused(tuner: Client, wrong: Mapping[str, Any]) -> None:
    assert recognized(tuner, b"GGUF", **wrong).status_code == 422


def test_a_wrong_file_is_one_line_that_names_it(tuner: Client) -> None:
    line = problem(sent(tuner, b"GGUF\3\0", "llama.gguf"))
    assert line.startswith("llama.gguf: this is a GGUF model of llama.cpp. Its weights")
    assert not Graph.objects.exists()


def test_a_name_cannot_become_markup(tuner: Client) -> None:
    file = SimpleUploadedFile("<script>a</script>.onnx", b"\x08\x08\x12\x07pytorch")
    page = tuner.post("/import", {"file": file}).content.decode()
    assert "<script>a" not in page


def test_points_are_stored_once_with_what_the_file_lacks(tuner: Client) -> None:
    fields = {"device": "NVIDIA H200", "revision": "abcdef1"}
    answer = sent(tuner, AUTOTUNE, "tune.log", **fields)
    assert (answer.status_code, answer.json()) == (201, {"url": "/series", "new": True})
    assert Series.objects.get().device_name == "NVIDIA H200"
    assert "Imported 1 point of 1 series." in tuner.get("/series").content.decode()
    assert sent(tuner, AUTOTUNE, "tune.log", **fields).status_code == 201
    assert (Datum.objects.count(), Batch.objects.count()) == (1, 1)
    assert "device" in problem(sent(tuner, AUTOTUNE, "tune.log"))


def test_one_file_can_be_of_two_devices(tuner: Client) -> None:
    assert sent(tuner, AUTOTUNE, device="H200", revision="abcdef1").status_code == 201
    other = sent(tuner, AUTOTUNE, device="MI300X", revision="abcdef1")
    assert other.status_code == 201
    assert {series.device_name for series in Series.objects.all()} == {"H200", "MI300X"}


@pytest.mark.parametrize("packed", [False, True])
def test_results_of_another_installation_are_imported(
    tuner: Client,
    graph_of_results: Graph,  # noqa: F811
    packed: bool,
) -> None:
    User.objects.filter(username="tuner").update(is_staff=True)
    content = json.dumps(results_file.to_json(recorded.recorded()), sort_keys=True).encode()
    answer = sent(tuner, gzip.compress(content) if packed else content, "a.json")
    assert answer.json() == {"url": TuningRun.objects.get().get_absolute_url(), "new": True}
    assert AuditEntry.objects.get(action="import results").actor.username == "tuner"
    assert sent(tuner, content, "b.json").json()["new"] is False


def test_results_that_unpack_beyond_the_limit_are_refused(tuner: Client, settings: Any) -> None:
    settings.API_BODY_MAX_BYTES = 1 << 20
    User.objects.filter(username="tuner").update(is_staff=True)
    bomb = gzip.compress(b'{"kind": "kiln results", "a": "' + b"x" * (4 << 20) + b'"}')
    assert problem(sent(tuner, bomb, "results.json.gz")).endswith("more than 1 MiB")


def test_a_kernel_needs_its_launch(tuner: Client) -> None:
    board = {"board": "gfx942 MI300X"}
    assert "A launch is required" in problem(sent(tuner, LISTING.encode(), "double.s", **board))
    answer = sent(tuner, LISTING.encode(), "double.s", launch=LAUNCH, **board)
    row = ForeignKernel.objects.get()
    assert answer.json() == {"url": row.get_absolute_url(), "new": True}
    assert row.name == "double.s"


def test_each_kind_needs_its_permission(client: Client) -> None:
    importer(client)
    denial = "Your account lacks the permission"
    answer = recognized(client, AUTOTUNE).json()
    assert answer["use"] == ""
    assert denial in answer["advice"]
    assert denial in problem(sent(client, AUTOTUNE, device="H200", revision="abcdef1"))
    results = json.dumps(results_file.to_json(recorded.recorded()), sort_keys=True).encode()
    assert "only staff may import results files" in problem(sent(client, results))
    assert recognized(client, samples.path("gpt2_2layer").read_bytes()).json()["use"] == "graph"


def test_waiting_graphs_say_their_place_in_the_queue(client: Client) -> None:
    first, second = factories.graph(name="first"), factories.graph(name="second")
    page = " ".join(importer(client).get("/import").content.decode().split())
    for graph, place in ((first, 1), (second, 2)):
        row = page.partition(f'id="graph-{graph.pk}"')[2].partition("</tr>")[0]
        assert f"position {place} in the queue" in row
    assert "data-live" in page


def test_a_preparation_is_cancelled_and_starts_again_with_the_same_file(client: Client) -> None:
    importer(client)
    content = samples.path("gpt2_2layer").read_bytes()
    sent(client, content, "a.pt2")
    graph = Graph.objects.get()
    assert re.search(rf'action="/graphs/{graph.pk}/cancel"', client.get("/import").content.decode())
    assert client.post(f"/graphs/{graph.pk}/cancel").headers["Location"] == "/import"
    graph.refresh_from_db()
    assert graph.state == State.CANCELLED
    page = client.get("/import").content.decode()
    assert "/cancel" not in page
    assert "import the file again to prepare it" in page
    assert "Import its file again" in client.get(graph.get_absolute_url()).content.decode()
    sent(client, content, "a.pt2")
    graph.refresh_from_db()
    assert graph.state == State.QUEUED


def test_only_the_importer_and_staff_cancel(client: Client, admin_client: Client) -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "a", [], None)
    importer(client)
    assert "/cancel" not in client.get("/import").content.decode()
    assert client.post(f"/graphs/{graph.pk}/cancel").status_code == 403
    assert admin_client.post(f"/graphs/{graph.pk}/cancel").status_code == 302
