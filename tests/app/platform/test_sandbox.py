"""Where the fence is not whole, what others send is read only if the operator said so."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

import scheduler.sandbox
from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import ForeignKernel
from codegen_app.kernels.services import external_kernels
from codegen_app.platform.config import sandbox, serving
from scheduler import samples
from scheduler.errors import UserError
from scheduler.sandbox import Protection, Status

pytestmark = pytest.mark.django_db
NOTE = "all files of this user can be read and written: the kernel has no Landlock"


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    parts = (Protection("files", False, NOTE), Protection("another user", False, "", needed=False))
    monkeypatch.setattr(scheduler.sandbox, "sandbox_status", lambda: Status(parts))
    settings.FENCE = sandbox.AVAILABLE


@pytest.fixture
def importer(client: Client) -> Client:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="import_graph"))
    client.force_login(user)
    return client


@pytest.mark.usefixtures("no_landlock")
def test_uploads_are_refused_in_a_line_that_says_how_to_mend_it(
    importer: Client, settings: Any
) -> None:
    file = SimpleUploadedFile("model.pt2", samples.path("llama_2layer").read_bytes())
    answer = importer.post("/import", {"file": file}, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert NOTE in error["text"]
    assert "KILN_FENCE=optional" in error["text"]
    with pytest.raises(UserError, match="KILN_FENCE=optional"):
        board = external_kernels.boards()[0]
        user = User.objects.get()
        external_kernels.submit(BytesIO(b""), "a.s", "", board, user)
    with pytest.raises(UserError, match="KILN_FENCE=optional"):  # on a worker's machine
        external_kernels._analyse(ForeignKernel(), SimpleNamespace(), {})  # type: ignore[arg-type]
    assert not Graph.objects.exists()
    assert not ForeignKernel.objects.exists()


@pytest.mark.usefixtures("no_landlock")
def test_the_operator_s_own_files_and_an_accepted_risk_are_not_refused(settings: Any) -> None:
    path = samples.path("llama_2layer")
    assert graphs.import_graph(path, "llama", [], None)[1], "who imports it reads any file anyway"
    user = User.objects.create_user("ada")
    with pytest.raises(UserError):
        graphs.import_graph(path, "llama", [], user)
    settings.FENCE = sandbox.OPTIONAL
    graph, is_new = graphs.import_graph(path, "llama", [], user)
    assert graph.name == "llama"
    assert not is_new


@pytest.mark.usefixtures("no_landlock")
def test_the_page_of_devices_and_the_start_say_so(
    importer: Client,
    settings: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "serving_problems", lambda _: [])
    for choice, is_said in ((sandbox.AVAILABLE, True), (sandbox.OPTIONAL, False)):
        settings.FENCE = choice
        assert ("are not read on this machine" in importer.get("/devices").content.decode()) is (
            is_said
        )
        serving.check(settings)
        said = capsys.readouterr().err
        assert (said.count("\n"), NOTE in said) == ((1, True) if is_said else (0, False))


def test_with_a_whole_fence_nothing_is_refused(settings: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        scheduler.sandbox,
        "sandbox_status",
        lambda: Status((Protection("files", True, "by Landlock"),)),
    )
    for choice in (sandbox.AVAILABLE, sandbox.REQUIRED, sandbox.OPTIONAL):
        assert sandbox.uploads_disabled_reason(choice) == ""
