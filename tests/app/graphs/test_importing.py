"""Importing: real models in, malformed files out, nothing half-recorded; sizes that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import preparation
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.tuning.models import TuningTask
from codegen_app.tuning.services import run_requests
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import samples
from scheduler.errors import UserError

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


def import_sample(name: str = "gpt2_2layer", targets: tuple[str, ...] = ()) -> Graph:
    graph, new = graphs.import_graph(samples.path(name), name, targets, None)
    assert new
    return graph


def nothing_recorded() -> bool:
    return not any(model.objects.exists() for model in (Graph, Artifact, AuditEntry))


def test_nodes_know_where_they_came_from_and_what_they_read(admin_user: User) -> None:
    file = samples.path("gpt2_2layer")
    graph, new = graphs.import_graph(file, "my model", ["gfx942"], admin_user)
    assert new
    assert graph.nodes.count() == graph.node_count > 100
    node = graph.nodes.get(target="aten.addmm.default", module_path__endswith="h.0.attn.c_attn")
    assert node.frames[-1]["line"] > 0
    assert node.frames[-1]["file"].endswith(".py")
    made = {output for other in graph.nodes.all() for output in other.outputs}
    given = {entry["name"] for entry in graph.inputs}
    assert node.inputs
    assert set(node.inputs) <= made | given
    assert artifacts.read(graph.file) == file.read_bytes()
    assert AuditEntry.objects.get(action="import").actor == admin_user


@pytest.mark.full(but=["plain"])
@pytest.mark.apart
@pytest.mark.parametrize("decompose", [False, True], ids=["plain", "decomposed"])
def test_nodes_say_which_buffers_they_write(tmp_path: Path, decompose: bool) -> None:
    torch = pytest.importorskip("torch")

    class Cache(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(4))
            self.register_buffer("kept", torch.zeros(4, 4))

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            self.kept[1:2] = x
            return x * self.calls

    program = torch.export.export(Cache(), (torch.ones(4),))
    torch.export.save(program.run_decompositions() if decompose else program, tmp_path / "m.pt2")
    graph, _ = graphs.import_graph(tmp_path / "m.pt2", "m", (), None)
    page = graph_page(graph.pk)
    written = {node.name: node.writes for node in page.nodes if node.writes}
    last = "slice_scatter" if decompose else "copy_"
    assert written == {"add" if decompose else "add_": ("calls",), last: ("kept",)}
    assert set(page.written) == {"calls", "kept"}


@pytest.mark.apart
def test_constants_among_the_outputs_are_on_the_page(tmp_path: Path, client: Client) -> None:
    torch = pytest.importorskip("torch")

    class Constants(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return 3, x + 1, None, [2.5] * 6, float("inf")

    program = torch.export.export(Constants(), (torch.ones(4),))
    torch.export.save(program, tmp_path / "m.pt2")
    graph, _ = graphs.import_graph(tmp_path / "m.pt2", "m", (), None)
    address = graph.get_absolute_url()
    client.force_login(User.objects.create_user("reader"))
    told = client.get(f"{address}.json").json()
    assert told["outputs"] == ["add"]
    assert [each["value"] for each in told["constant_outputs"]][-2:] == [2.5, {"float": "inf"}]
    page = client.get(address).content.decode()
    assert "<dt>Constant outputs</dt>" in page
    assert ">3 (output 0), None (output 2), 2.5 (output 3)" in page
    assert "3 more<" in page


def test_the_same_model_again_is_the_same_row() -> None:
    graph = import_sample()
    again, new = graphs.import_graph(samples.path("gpt2_2layer"), "other name", [], None)
    assert (again, new) == (graph, False)
    assert AuditEntry.objects.filter(action="import").count() == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"\x00" * 1000])
def test_what_is_no_graph_is_one_line_and_leaves_nothing(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.pt2"
    file.write_bytes(content)
    with pytest.raises(UserError) as rejected:
        graphs.import_graph(file, "bad", [], None)
    assert len(str(rejected.value).splitlines()) == 1
    assert nothing_recorded()


def test_a_file_cut_short_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "model.pt2"
    whole = samples.path("gpt2_2layer").read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError):
        graphs.import_graph(file, "bad", [], None)
    assert nothing_recorded()


@pytest.mark.apart
def test_a_file_that_takes_too_long_is_rejected_in_one_line_where_it_is_read_and_prepared(
    settings: object,
) -> None:
    settings.IMPORT_MAX_S = 0.01
    with pytest.raises(UserError, match=r"exceeds the time limit of 0.01 s"):
        graphs.import_graph(samples.path("gpt2_2layer"), "slow", [], None)
    assert nothing_recorded()
    settings.IMPORT_MAX_S, settings.PREPARE_MAX_S = 60, 0.01
    graph = import_sample()
    held = work.claim_next(Graph.objects.filter(pk=graph.pk), "w")
    preparation.prepare(held)
    graph.refresh_from_db()
    assert graph.state == State.REJECTED
    assert "exceeds the time limit of 0.01 s" in graph.reason
    assert not KernelUse.objects.exists()


def test_a_file_too_large_is_not_read(settings: object, tmp_path: Path) -> None:
    settings.GRAPH_FILE_MAX_BYTES = 10
    with pytest.raises(UserError, match="more than the 10"):
        graphs.import_graph(samples.path("gpt2_2layer"), "large", [], None)
    assert nothing_recorded()


def test_a_target_that_shares_no_sources_with_the_others_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernels' rows hold one source for all targets of a graph."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "support" / "tiny_backend")
    with pytest.raises(UserError, match="the pages make no kernels for tiny; choose among: gfx90a"):
        graphs.import_graph(samples.path("gpt2_2layer"), "tiny", ["gfx942", "tiny"], None)
    assert nothing_recorded()


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UserError, match="gfx9000"):
        graphs.import_graph(samples.path("gpt2_2layer"), "m", ["gfx9000"], None)
    assert nothing_recorded()


def prepare() -> Graph:
    graph = work.claim_next(Graph.objects.all(), "w")
    assert graph is not None
    preparation.prepare(graph)
    graph.refresh_from_db()
    return graph


@pytest.mark.full
def test_a_prepared_graph_has_a_kernel_for_every_node_and_a_run_for_every_problem() -> None:
    asked = import_sample(targets=("gfx942", "cpu"))
    run = run_requests.start_run(asked, "cpu", "cpu", {}, None, candidate_limit=2)
    assert not run.tasks.exists(), "it waits for its graph"
    graph = prepare()
    assert (graph.state, graph.reason) == (State.DONE, "")
    nodes = graph.template_nodes.filter(extern_reason="")
    assert nodes.count() > 10
    assert KernelUse.objects.filter(is_default=True).count() == nodes.count()
    assert {build.target for build in Build.objects.all()} == {"gfx942", "cpu"}
    assert "def " in graph.wrapper

    problems = set(nodes.values_list("problem", flat=True))
    assert len(problems) < nodes.count(), "equal layers are one problem"
    assert set(TuningTask.objects.values_list("problem", flat=True)) == problems
    for task in TuningTask.objects.all():
        rows = task.candidates.order_by("position")
        assert 1 <= rows.filter(kernel__isnull=False).count() <= 2
        first = rows.first()
        assert first is not None
        default = KernelUse.objects.get(template_node=task.template_node, is_default=True)
        assert first.kernel == default.kernel
        rejected = rows.filter(state=State.REJECTED)
        assert rejected.count() == len(task.template_node.rejected_for(task.run.target))


@pytest.mark.full
def test_a_worker_that_lost_its_lease_records_nothing() -> None:
    """It was thought dead and comes back with its work done, after or before the other."""
    import_sample(targets=("gfx942",))
    slow = work.claim_next(Graph.objects.all(), "slow")
    assert slow is not None
    work.requeue_orphans()
    with pytest.raises(work.LeaseLostError):
        preparation.prepare(slow)
    assert not KernelUse.objects.exists()
    assert not Build.objects.exists()
    prepare()
    recorded = KernelUse.objects.count(), Build.objects.count()
    assert min(recorded) > 0
    with pytest.raises(work.LeaseLostError):
        preparation.prepare(slow)
    assert (KernelUse.objects.count(), Build.objects.count()) == recorded


@pytest.mark.parametrize(
    ("bindings", "said"),
    [({"nope": 3}, "no symbolic size 'nope'"), ({"least": 0}, "out of the bounds")],
)
def test_sizes_that_do_not_fit_are_rejected(bindings: dict[str, int], said: str) -> None:
    graph = import_sample()
    symbol = next(iter(graph.symbols))
    given = {symbol if name == "least" else name: value for name, value in bindings.items()}
    with pytest.raises(UserError, match=said):
        run_requests.start_run(graph, "cpu", "cpu", given, None)
    assert not graph.tuning_runs.exists()
