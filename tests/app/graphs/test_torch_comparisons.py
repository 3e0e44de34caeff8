"""torch as a second oracle: which worker compares, where the fence must be whole, what the graph's
page says of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from codegen_app import tasks
from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.graphs.services import imports as graphs
from codegen_app.graphs.services import torch_comparisons
from codegen_app.kernels.models import Packing
from codegen_app.platform import artifacts
from codegen_app.site import queued_work
from codegen_app.tuning.services import graph_deletion, packing, quarantine
from codegen_app.workers import compilers, liveness, queue, work
from codegen_app.workers import heartbeat as workers
from codegen_app.workers.models import State, Worker
from codegen_app.workers.queue import Kind
from scheduler import sandbox, untrusted
from scheduler.errors import MachineError, UserError
from scheduler.sandbox import Protection, Status
from scheduler.sandbox import status as stated
from scheduler.sandbox.process import Cancellation, Cancelled
from tests.app import factories
from tests.support.pages_world import finding, make_torch_comparison

# Heartbeats have connections of their own, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

Compare = Callable[..., list[dict[str, Any]]]


def prepared(**fields: Any) -> Graph:
    """A graph with the rows of one that was prepared, and its file."""
    symbols = {"s0": {"hint": 64, "min": 2, "max": None}}
    defaults = {"state": State.DONE, "outputs": ["y", "z"], "symbols": symbols}
    return factories.graph(**defaults | fields)


def answers(*findings: dict[str, Any]) -> list[dict[str, Any]]:
    """What the process that compares answers, of its own version."""
    return [{"name": "torch 1.0", "bindings": {"s0": 64}, **one} for one in findings]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Compare], None]:
    """Has this called in place of the process that runs torch, on a machine with torch and a whole
    fence."""
    monkeypatch.setattr(compilers, "torch_version", lambda: "2.13.0+cpu")
    monkeypatch.setattr(artifacts, "local_file", lambda *_: tmp_path / "m.pt2")
    monkeypatch.setattr(sandbox, "require", lambda: None)

    def by(compare: Compare) -> None:
        monkeypatch.setattr(untrusted, "compare_with_torch", compare)

    return by


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("torch was started")


def test_a_prepared_graph_is_compared_after_all_else(
    compared: Callable[[Compare], None], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the hints of its symbols, within the limits of a preparation."""
    settings.PREPARE_MAX_S, settings.IMPORT_MAX_MEMORY_BYTES = 17, 1 << 30
    graph = prepared()
    torch_comparisons.request(graph)
    assert not TorchComparison.objects.exists(), "disabled on this site"
    settings.COMPARE_WITH_TORCH = True
    torch_comparisons.request(graph)
    Packing.objects.create(graph=graph, key="k", kernels=1)
    order: list[Any] = []

    def packed(row: Packing) -> None:
        order.append("packed")
        work.finish(row, State.REJECTED, reason="a test's")

    def compare(
        file: Path, bindings: Any, limits: untrusted.Limits, cancellation: Any, name: str
    ) -> Any:
        order.append((file.name, bindings, limits, name))
        return answers(finding("y"), finding("z"))

    monkeypatch.setattr(packing, "pack", packed)
    compared(compare)
    tasks.prepare()
    assert order == ["packed", ("m.pt2", {"s0": 64}, untrusted.Limits(17, 1 << 30), graph.name)]
    row = TorchComparison.objects.get()
    assert (row.state, row.oracle, row.bindings) == (State.DONE, "torch 2.13.0", {"s0": 64})
    assert row.findings == [finding("y"), finding("z")]
    torch_comparisons.request(graph)
    row.refresh_from_db()
    assert row.state == State.DONE, "done once"


def test_importing_the_file_again_asks_for_what_failed_or_is_missing(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.COMPARE_WITH_TORCH = True
    graph, file = prepared(), tmp_path / "m.pt2"
    file.write_bytes(b"as before")
    monkeypatch.setattr(untrusted, "read_graph", lambda *_: {"digest": graph.digest})

    def imported() -> str:
        assert graphs.import_graph(file, "again", [], None) == (graph, False)
        return TorchComparison.objects.get(graph=graph).state

    assert imported() == State.QUEUED, "an earlier version prepared it"
    rows = TorchComparison.objects.all()
    for state in (State.REJECTED, State.CANCELLED, State.QUARANTINED):
        work.close(rows, state, "failed")
        assert imported() == State.QUEUED
        assert rows.get().reason == ""
    rows.update(again_at=timezone.now() + timedelta(minutes=1))
    imported()
    assert rows.get().again_at is None, "what it lacked may have come with the file"
    rows.update(state=State.DONE, oracle="torch 2.13.0")
    assert imported() == State.DONE
    Graph.objects.update(state=State.REJECTED, reason="it cannot be scheduled")
    rows.delete()
    graphs.import_graph(file, "again", [], None)
    assert not rows.exists()


def test_a_worker_without_torch_leaves_it_to_one_that_has_it(
    compared: Callable[[Compare], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(never)
    row = make_torch_comparison(prepared(), state=State.QUEUED)
    monkeypatch.setattr(compilers, "torch_version", lambda: "")
    tasks.prepare()
    row.refresh_from_db()
    assert (row.state, row.attempts, row.reason) == (State.QUEUED, 0, "")
    assert not queued_work.has_work("prepare"), "else a worker without torch ends itself"

    compared(lambda *_, **__: answers(finding()))
    monkeypatch.setattr(compilers, "torch_version", lambda: "2.13.0")
    assert queued_work.has_work("prepare")
    tasks.prepare()
    row.refresh_from_db()
    assert row.state == State.DONE


def worker(**fields: Any) -> Worker:
    now = timezone.now()
    facts = {"queues": ["prepare", "compile"], "versions": {"torch": "2.13.0"}, "host": "h"}
    times = {"pid": 1, "started_at": now, "seen_at": now}
    name = {"name": factories.digest()}
    return Worker.objects.create(**name | facts | times | fields)


@pytest.mark.parametrize(
    ("fields", "serves"),
    [
        ({}, True),
        ({"versions": {}}, False),
        ({"versions": {"kiln": "0.1"}}, False),
        ({"queues": ["compile"]}, False),
        ({"remote": True}, False),
        ({"stopped_at": timezone.now()}, False),
        ({"seen_at": timezone.now() - timedelta(days=1)}, False),
    ],
    ids=["alive", "without torch", "named other packages", "compiles", "remote", "stopped", "gone"],
)
def test_it_is_announced_and_counted_where_a_live_worker_has_torch(
    fields: dict[str, Any], serves: bool
) -> None:
    """A site without torch has nothing that waits for ever, and nobody is woken for it."""
    graph = prepared()
    make_torch_comparison(graph, state=State.QUEUED)
    worker(**fields)
    assert sum(rows.count() for rows in queued_work.due_rows(Kind.PREPARE)) == int(serves)
    page = graph_page(graph.pk)
    assert page.torch is not None
    assert page.torch.headline == "waiting for a worker with torch"
    assert page.torch.detail == ("" if serves else "none online; start one with torch")
    assert page.is_open == serves, "a page that looks for news finds some"


def test_a_fence_with_a_hole_closes_it(
    compared: Callable[[Compare], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's reader runs what the file says: not where that could reach anything."""
    compared(never)
    monkeypatch.setattr(sandbox, "require", stated.require)
    hole = Protection("files", False, "any file of this user can be read")
    monkeypatch.setattr(stated, "sandbox_status", lambda: Status((hole,)))
    row = make_torch_comparison(prepared(), state=State.QUEUED)
    tasks.prepare()
    row.refresh_from_db()
    assert row.state == State.REJECTED
    assert row.reason == (
        "the sandbox is required, but incomplete on this machine"
        " (files: any file of this user can be read)"
    )


def test_what_cannot_be_compared_is_closed_and_what_the_machine_lacks_put_off(
    compared: Callable[[Compare], None],
) -> None:
    def fails(error: Exception) -> TorchComparison:
        def compare(*_: Any, **__: Any) -> Any:
            raise error

        TorchComparison.objects.all().delete()
        row = make_torch_comparison(prepared(), state=State.QUEUED)
        compared(compare)
        tasks.prepare()
        row.refresh_from_db()
        return row

    over = fails(UserError("m.pt2: exceeds the time limit of 300 s for a model"))
    assert (over.state, over.reason) == (
        State.REJECTED,
        "m.pt2: exceeds the time limit of 300 s for a model",
    )
    ended = fails(MachineError("m.pt2: the reader was killed by SIGKILL: try again"))
    assert ended.state == State.QUEUED
    assert "killed by SIGKILL" in ended.reason
    assert ended.again_at is not None
    torch_comparisons.request(ended.graph)
    ended.refresh_from_db()
    assert ended.again_at is not None, "disabled on this site"


def test_a_difference_is_a_result(compared: Callable[[Compare], None]) -> None:
    graph = prepared(outputs=["y", "z"])
    row = make_torch_comparison(graph, state=State.QUEUED)
    wrong = {"passed": False, "max_error": 0.25, "bound": 1e-5, "ratio": 2.5e4}
    compared(lambda *_, **__: answers(finding("y"), finding("z", **wrong)))
    tasks.prepare()
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.DONE, "")
    page = graph_page(graph.pk).torch
    assert page is not None
    assert [one.line for one in page.differing] == ["z: error 2.50e-01, bound 1.00e-05"]


def test_a_worker_says_that_it_has_torch(
    compared: Callable[[Compare], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(never)
    monkeypatch.setattr(workers, "probe_devices", lambda: ())
    heart = workers.WorkerHeartbeat(
        "w@h", ["prepare"], lambda: liveness.Progress(0, busy=True), queued_work.has_work
    )
    for version in ("2.13.0", ""):
        monkeypatch.setattr(compilers, "torch_version", lambda known=version: known)
        heart._beat(heart._facts())
        assert Worker.alive_with_torch().exists() == bool(version)


def test_numbers_that_json_has_not_are_none(compared: Callable[[Compare], None]) -> None:
    graph = prepared(outputs=["y"])
    row = make_torch_comparison(graph, state=State.QUEUED)
    wrong = finding(passed=False, max_error=math.inf, bound=0.0, ratio=math.nan, detail="check: \0")
    compared(lambda *_, **__: answers(wrong))
    tasks.prepare()
    row.refresh_from_db()
    assert row.state == State.DONE, "a difference is a result"
    (kept,) = row.findings
    assert (kept["max_error"], kept["ratio"], kept["bound"]) == (None, None, 0.0)
    assert kept["detail"] == "check: \\x00"


def test_an_input_that_torch_alone_writes_is_a_difference(
    compared: Callable[[Compare], None],
) -> None:
    """It has a finding beyond those of the graph's outputs."""
    inputs = [{"name": "x", "kind": "input", "source_name": ""}]
    row = make_torch_comparison(prepared(outputs=["y"], inputs=inputs), state=State.QUEUED)
    compared(lambda *_, **__: answers(finding(output="x", passed=False), finding()))
    tasks.prepare()
    row.refresh_from_db()
    assert row.state == State.DONE
    assert [one["passed"] for one in row.findings] == [False, True]


_MALFORMED: list[Any] = [
    None,
    7,
    "findings",
    {"y": 1},
    [1],
    [{}],
    answers(finding(passed=1)),
    answers(finding(passed="yes")),
    answers(finding() | {"output": 3}),
    answers(finding(detail=None)),
    answers(finding(max_error="0")),
    answers(finding(bound=None)),
    answers(finding(ratio=10**400)),
    answers(*[finding()] * 3),
    [{**finding(), "bindings": {"s0": "64"}}],
    [{**finding(), "bindings": {}}],
]


@pytest.mark.parametrize("answer", _MALFORMED, ids=range(len(_MALFORMED)))
def test_an_answer_that_is_none_is_refused_in_one_line(
    answer: Any, compared: Callable[[Compare], None]
) -> None:
    """The process had run what the file holds: it may answer anything."""
    row = make_torch_comparison(prepared(), state=State.QUEUED, oracle="")
    compared(lambda *_, **__: answer)
    tasks.prepare()
    row.refresh_from_db()
    assert (row.state, row.reason) == (
        State.REJECTED,
        "torch 2.13.0: the answer is not a list of findings",
    )


def _cancel(row: TorchComparison) -> None:
    work.cancel(row, User.objects.create_user("somebody"))


def _delete(row: TorchComparison) -> None:
    graph_deletion.delete(row.graph)


def _lose(_: TorchComparison) -> None:
    work.requeue_orphans()  # a beat may renew a lease that has just run out


@pytest.mark.parametrize(
    ("end", "left"), [(_cancel, [State.CANCELLED]), (_delete, []), (_lose, [State.QUEUED])]
)
def test_a_worker_that_lost_the_row_stops_and_writes_nothing(
    end: Callable[[TorchComparison], None],
    left: list[State],
    compared: Callable[[Compare], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "_MAX_INTERVAL_S", 0.02)
    make_torch_comparison(prepared(), state=State.QUEUED, findings=[])
    held = work.claim_next(TorchComparison.objects.all(), "w")
    assert held is not None

    def compare(_: Path, __: Any, ___: Any, cancellation: Cancellation, ____: str) -> Any:
        end(held)
        while not cancellation.cancelled:  # the heartbeat sees it
            pass
        raise Cancelled

    compared(compare)
    work.attempt(held, torch_comparisons.run)
    rows = TorchComparison.objects.all()
    assert [(one.state, one.findings, one.claim) for one in rows] == [(one, [], "") for one in left]


def test_an_outcome_that_comes_too_late_is_void(compared: Callable[[Compare], None]) -> None:
    make_torch_comparison(prepared(), state=State.QUEUED, findings=[])
    held = work.claim_next(TorchComparison.objects.all(), "w")
    assert held is not None

    def compare(*_: Any, **__: Any) -> Any:
        _lose(held)
        return answers(finding())

    compared(compare)
    work.attempt(held, torch_comparisons.run)
    assert [(one.state, one.findings) for one in TorchComparison.objects.all()] == [("queued", [])]


def test_a_row_that_was_put_aside_is_released_to_the_workers_that_prepare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(queue, "notify", lambda kind, *_, **__: told.append(kind))
    row = make_torch_comparison(prepared(), state=State.QUARANTINED, reason="internal error")
    assert quarantine.release(row, None)
    row.refresh_from_db()
    assert (row.state, row.reason, told) == (State.QUEUED, "", [queue.Kind.PREPARE])


@pytest.mark.full
def test_a_file_is_compared_with_torch_itself(settings: Any, tmp_path: Path) -> None:
    """Imported, prepared and compared by a worker's task, behind the fence."""
    torch = pytest.importorskip("torch")
    if sandbox.sandbox_status().missing:
        pytest.skip("the fence is not whole here")

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return self.linear(x).relu(), x.sum(-1)

    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Model(), (torch.rand(5, 8),), dynamic_shapes={"x": {0: rows}})
    torch.export.save(program, tmp_path / "model.pt2")
    settings.COMPARE_WITH_TORCH = True
    graph, _ = graphs.import_graph(tmp_path / "model.pt2", "model", ["cpu"], None)
    tasks.prepare()
    row = TorchComparison.objects.get(graph=graph)
    assert (row.state, row.reason) == (State.DONE, "")
    assert [one["passed"] for one in row.findings] == [True, True]
    assert list(row.bindings.values()) == [5]
    page = graph_page(graph.pk).torch
    assert page is not None
    assert page.headline == f"torch {torch.__version__.partition('+')[0]} agrees"
