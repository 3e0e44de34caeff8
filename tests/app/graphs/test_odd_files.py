"""Files whose texts or names no row can hold, and equal files at once: a line, never an error."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph, GraphNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.platform.models import Artifact
from scheduler import pipeline, samples, untrusted
from scheduler.errors import UserError
from scheduler.ir.serialize import graph_to_json
from tests.support.hostile import NAMES

Content = dict[str, Any]
FILE = samples.path("gpt2_2layer")


@pytest.fixture(scope="module")
def whole() -> Content:
    return graph_to_json(pipeline.load(FILE))


@pytest.fixture
def read(whole: Content, monkeypatch: pytest.MonkeyPatch) -> Content:
    """What the reader says of any file; tests change it."""
    content = copy.deepcopy(whole)
    monkeypatch.setattr(untrusted, "read_graph", lambda *_: content)
    return content


def node_named(name: str) -> Callable[[Content], None]:
    return lambda content: content["nodes"][3].update(name=name)


REFUSED: dict[str, Callable[[Content], Any]] = {
    "a long name": node_named("n" * 201),
    "a name with NUL": node_named("a\0b"),
    "a name with half a character": node_named("\ud800"),
    "a long op": lambda content: content["nodes"][3].update(target="aten." + "x" * 300),
    "a value's name with NUL": lambda content: content["tensors"].update({"\0": {}}),
    "a symbol with half a character": lambda content: content["symbols"].update({"\udfff": {}}),
}
KEPT: dict[str, Callable[[Content], Any]] = {
    "a long module path": lambda c: c["nodes"][3]["origin"].update(module_path="m." * 3000),
    "a long module type": lambda c: c["nodes"][3]["origin"].update(module_type="T" * 3000),
    "a long function": lambda c: c["nodes"][3]["origin"].update(torch_function="f" * 3000),
    "a path with NUL": lambda c: c["nodes"][3]["origin"].update(module_path="a\0\ud800b"),
    "a frame with NUL": lambda c: c["nodes"][3]["origin"].update(frames=[["\0", 1, "\ud9aa", ""]]),
    "a text argument with NUL": lambda c: c["nodes"][3].update(args=["\0", {"\ud800": "\0"}]),
    "an input with NUL": lambda c: c["inputs"].append({"name": "\0"}),
    "a long producer": lambda c: c.update(producer="\0" + "p" * 3000),
}


@pytest.mark.django_db
@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_names_that_rows_cannot_keep_are_refused_in_one_line(
    damage: Callable[[Content], Any], read: Content
) -> None:
    damage(read)
    with pytest.raises(UserError) as refused:
        graphs.import_graph(FILE, "odd", [], None)
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).isprintable()
    assert not (Graph.objects.exists() or Artifact.objects.exists() or AuditEntry.objects.exists())


@pytest.mark.django_db
@pytest.mark.parametrize("damage", KEPT.values(), ids=KEPT)
def test_other_texts_are_kept_as_far_as_they_can_be(
    damage: Callable[[Content], Any], read: Content
) -> None:
    damage(read)
    graph, new = graphs.import_graph(FILE, "odd", [], None)
    assert new
    assert GraphNode.objects.filter(graph=graph).count() == len(read["nodes"])


@pytest.mark.full(but=11)
@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_a_graph_may_be_called_anything(name: str, read: Content) -> None:
    graph, _ = graphs.import_graph(FILE, name, [], None)
    assert graph.name
    assert len(graph.name) <= 200


@pytest.mark.full
@pytest.mark.django_db
@pytest.mark.parametrize("name", [*NAMES, "m." + "t" * 300], ids=lambda name: ascii(name)[:24])
def test_a_file_may_be_called_anything(name: str, tuner: Client, read: Content) -> None:
    """Large enough to be a file on the server, too."""
    sendable = name.encode("utf-8", "replace").decode()
    file = io.BytesIO(FILE.read_bytes() + bytes(3 << 20))
    file.name = sendable
    answer = tuner.post("/import", {"file": file})
    assert answer.status_code in (302, 400, 422)
    assert Path("/tmp/elsewhere").exists() is False


@pytest.mark.django_db(transaction=True)
def test_equal_files_at_once_are_one_graph(whole: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have read the file before any has recorded it."""
    together = Barrier(6)

    def read_together(*_: object) -> Content:
        together.wait()
        return copy.deepcopy(whole)

    monkeypatch.setattr(untrusted, "read_graph", read_together)

    def imported(number: int) -> tuple[int, bool]:
        try:
            graph, new = graphs.import_graph(FILE, f"n{number}", [], None)
            return graph.pk, new
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(imported, range(6)))
    assert len({pk for pk, _ in answers}) == 1
    assert [new for _, new in answers].count(True) == 1
    assert Graph.objects.count() == Artifact.objects.count() == 1
