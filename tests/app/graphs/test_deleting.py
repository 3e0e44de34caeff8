"""Deleting a graph ends what is done for it."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build
from codegen_app.kernels.services import engine, preparation
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import graph_deletion
from codegen_app.workers import work
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_preparation_that_computes_for_ever_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "_MAX_INTERVAL_S", 0.05)  # heartbeats
    factories.graph()
    row = work.claim_next(Graph.objects.all(), "w")
    assert row is not None
    began = threading.Event()

    def never_ends(_: str) -> None:
        began.set()
        while True:
            sum(range(1000))

    monkeypatch.setattr(preparation.untrusted, "dry_run", lambda *_: None)
    monkeypatch.setattr(engine, "scheduled", never_ends)

    def delete() -> None:
        from django.db import connection

        began.wait(PATIENCE_S)
        graph_deletion.delete(Graph.objects.get())
        connection.close()

    thread = threading.Thread(target=delete)
    thread.start()
    work.attempt(row, preparation.prepare)
    thread.join()
    assert not Graph.objects.exists()


def test_its_runs_and_builds_end_and_what_others_need_goes_on(client: Client) -> None:
    mine, other = factories.task(), factories.task()
    own, shared, asked = factories.build(), factories.build(), factories.build()
    for task, build in ((mine, own), (mine, shared), (other, shared)):
        factories.candidate(task, build=build)
    graph = mine.run.graph
    claimed = work.claim_next(Build.objects.filter(pk=own.pk), "w")
    assert claimed is not None
    client.force_login(User.objects.create_superuser("admin"))
    address = f"/admin/codegen_app/graph/{graph.pk}/delete/"
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert not Graph.objects.filter(pk=graph.pk).exists()
    assert not TuningRun.objects.filter(pk=mine.run_id).exists()
    states = dict(Build.objects.values_list("pk", "state"))
    assert states == {
        own.pk: State.CANCELLED,
        shared.pk: State.QUEUED,
        asked.pk: State.QUEUED,
    }
    assert not work.extend(claimed), "whoever compiles it stops"


def test_defaults_that_only_its_graph_shows_are_dropped() -> None:
    graph = factories.graph(state=State.DONE, finished_at=timezone.now())
    node = TemplateNode.objects.create(
        graph=graph, position=0, name="op0", kind="extern", op="x", extern_reason="x"
    )
    build = factories.build()
    build.kernel.uses.create(template_node=node, position=0, is_default=True)
    graph_deletion.drop_builds(graph)
    build.refresh_from_db()
    assert (build.state, build.reason) == (State.CANCELLED, "its graph was deleted")
