"""Tuning on demand: from pages, the admin, the command line and schedules; who, why, how far."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.tuning.models import Candidate, Occasion, RetuneSchedule, Selection, TuningRun
from codegen_app.tuning.pages.run.query import run_page
from codegen_app.tuning.queries.ledger import run_ledger
from codegen_app.tuning.services import planning, retuning, run_requests, schedules, selection_io
from codegen_app.tuning.services import selections as services
from codegen_app.workers import compilers
from codegen_app.workers.models import Control, State, Worker
from scheduler import samples
from scheduler.errors import UserError
from scheduler.runtime.devices import modelled_device, open_device
from scheduler.tuning.budget import Budget
from scheduler.tuning.ledger import read_jsonl
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="session")
def code_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def world(code_cache: Path) -> World:
    """Two nodes with one problem, compiled and timed kernels, a run."""
    made = make_world(code_cache, layers=2, candidates=3, compiled=2)
    Graph.objects.update(state=State.DONE)
    return made


@pytest.fixture
def tuner(client: Client) -> Client:
    user = User.objects.create_user("tuner", is_staff=True)
    wanted = Permission.objects.filter(
        codename__in=[
            *("retune", "select", "schedule"),
            *("view_graph", "view_generatedkernel", "view_selection"),
        ]
    )
    user.user_permissions.set(wanted)
    client.force_login(user)
    return client


FORM = {"target": ["cpu"], "budget": "5m", "priority": "7", "measurements": "9", "why": "a guess"}


def new_runs(world: World) -> list[TuningRun]:
    return list(TuningRun.objects.exclude(pk=world.run.pk).order_by("pk"))


def test_what_was_pointed_at_is_confirmed_and_then_begins(tuner: Client, world: World) -> None:
    node = world.nodes[0]
    page = tuner.get(f"/retune?node={node.pk}").content.decode()
    assert node.name in page
    assert re.search(r'value="cpu"[^>]* checked', page)
    assert "s0=16" in page, "the sizes of the latest run"
    assert new_runs(world) == []

    modelled = TuningRun.objects.create(
        graph=world.graph, device="model:MI300X", target="gfx942", planned_at=timezone.now()
    )
    page = tuner.get(f"/retune?node={node.pk}").content.decode()
    assert re.search(r'value="cpu"[^>]* checked', page), "a modelled run is not the usual choice"
    again = tuner.get(modelled.get_absolute_url()).content.decode()
    assert f"/retune?run={modelled.pk}&amp;target=model%3AMI300X" in again
    modelled.delete()

    answer = tuner.post("/retune", {**FORM, "node": [node.pk], "sizes": "s0=8"})
    (run,) = new_runs(world)
    assert answer.headers["Location"] == run.get_absolute_url()
    assert (run.template_node, run.target, run.device) == (node, "cpu", "cpu")
    assert (run.budget_s, run.max_measurements, run.priority) == (300, 9, 7)
    assert (run.bindings, run.why) == ({"s0": 8}, "a guess")
    assert not run.tasks.exists(), "a worker plans it"
    assert "Waiting to be planned" in tuner.get(run.get_absolute_url()).content.decode()
    assert planning.plan_waiting() == 1
    assert [task.priority > 60 for task in run.tasks.all()] == [True]
    entry = AuditEntry.objects.get(action="tune")
    assert (entry.actor, entry.why) == (run.requested_by, "a guess")


@pytest.mark.full(but=5)
@pytest.mark.parametrize(
    ("change", "field", "line"),
    [
        ({"why": " "}, "why", "Enter a reason for the audit log."),
        ({"target": []}, "target", "Choose at least one target."),
        ({"target": ["gfx1"]}, "target", "gfx1 is not a target."),
        ({"budget": "soon"}, "budget", "soon is not a duration. Examples: 60s, 5m, 1h."),
        ({"priority": "1000"}, "priority", "less than or equal to 100."),
        ({"measurements": "x"}, "measurements", "leave it empty for no limit."),
        ({"strategy": "magic"}, "strategy", "Unknown search strategy: magic."),
        (
            {"sizes": "s0"},
            "sizes",
            "s0 is not a size. Enter a symbol and its value, such as s0=16.",
        ),
        ({"node": ["x"]}, "node", "x: row numbers must be integers."),
    ],
)
def test_a_mistake_is_one_line_by_its_field_and_starts_nothing(
    change: dict[str, object], field: str, line: str, tuner: Client, world: World
) -> None:
    answer = tuner.post("/retune", {**FORM, "node": [world.nodes[0].pk], **change})
    assert answer.status_code == 422
    page = answer.content.decode()
    errors = re.findall(r'<p class="field-error" id="id_(\w+)_error" role="alert">(.*?)</p>', page)
    assert [name for name, _ in errors] == [field]
    assert errors[0][1].endswith(line)
    assert new_runs(world) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sizes": "s9=3"}, "has no symbolic size &#x27;s9&#x27;"),
        ({"node": ["0"]}, "Nothing to tune: start from a graph"),
    ],
)
def test_what_no_field_can_know_is_one_line_above(
    change: dict[str, object], line: str, tuner: Client, world: World
) -> None:
    answer = tuner.post("/retune", {**FORM, "node": [world.nodes[0].pk], **change})
    assert line in answer.content.decode()
    assert new_runs(world) == []


def test_before_a_run_its_problems_workers_and_queue_are_told(tuner: Client, world: World) -> None:
    page = tuner.get(f"/retune.json?graph={world.graph.pk}&target=cpu").json()
    assert [row["problems"] for row in page["subjects"]] == [1], "two nodes have one problem"
    targets = {row["name"]: row for row in page["targets"]}
    assert targets["cpu"]["workers"] == ["CPU emulation on worker-1"]
    assert targets["cpu"]["ahead"] == "1 run ahead, without a time limit"
    assert targets["gfx942"]["workers"] == []
    tuner.post("/retune", {**FORM, "graph": [world.graph.pk], "priority": "0"})
    page = tuner.get(f"/retune.json?graph={world.graph.pk}").json()
    targets = {row["name"]: row for row in page["targets"]}
    text = "2 runs ahead, at most 300 s, and 1 without a time limit"
    assert targets["cpu"]["ahead"] == text
    assert targets["gfx942"]["ahead"] == "no run ahead"
    text = tuner.get(f"/retune?graph={world.graph.pk}&target=gfx942").content.decode()
    assert re.search(r'value="gfx942"[^>]* checked', text)
    assert not re.search(r'value="cpu"[^>]* checked', text)


def test_the_strategy_is_chosen_by_name(tuner: Client, world: World) -> None:
    tuner.post("/retune", {**FORM, "node": [world.nodes[0].pk], "strategy": "random"})
    tuner.post("/retune", {**FORM, "node": [world.nodes[0].pk]})
    assert [run.strategy for run in new_runs(world)] == ["random", DEFAULT_STRATEGY]


def test_each_target_is_a_run_and_a_problem_is_tuned_once(tuner: Client, world: World) -> None:
    nodes = [node.pk for node in world.nodes]
    assert len({node.problem_id for node in world.nodes}) == 1
    answer = tuner.post("/retune", {**FORM, "node": nodes, "target": ["cpu", "gfx942"]})
    assert answer.headers["Location"] == "/runs"
    assert [run.target for run in new_runs(world)] == ["cpu", "gfx942"]
    assert new_runs(world)[1].device == "rocm:0"


def test_kernels_choices_runs_and_graphs_can_be_pointed_at(world: World) -> None:
    def found(**keys: object) -> list[str]:
        subjects = retuning.subjects(**{name: [key] for name, key in keys.items()})
        return [str(subject) for subject in subjects]

    first = f"{world.graph} {world.nodes[0].name} ({world.nodes[0].op})"
    assert found(kernels=world.kernels[0].name) == [first]
    assert found(selections=Selection.objects.get().pk) == [first]
    assert found(runs=world.run.pk) == [str(world.graph)]
    assert found(graphs=world.graph.pk, nodes=world.nodes[0].pk) == [str(world.graph)]


def test_the_admin_leads_to_the_confirmation(tuner: Client, world: World) -> None:
    rows = {
        "graph": (world.graph.pk, f"graph={world.graph.pk}"),
        "generatedkernel": (world.kernels[0].pk, f"kernel={world.kernels[0].name}"),
        "selection": (Selection.objects.get().pk, f"selection={Selection.objects.get().pk}"),
    }
    for model, (pk, query) in rows.items():
        data = {"action": "retune", "_selected_action": [pk]}
        answer = tuner.post(f"/admin/codegen_app/{model}/", data)
        assert answer.headers["Location"] == f"/retune?{query}"
        assert tuner.get(answer.headers["Location"]).status_code == 200
    User.objects.get().user_permissions.remove(Permission.objects.get(codename="retune"))
    tuner.post("/admin/codegen_app/graph/", {"action": "retune", "_selected_action": [1]})
    assert tuner.get(f"/retune?graph={world.graph.pk}").status_code == 403


def test_an_earlier_choice_is_put_back_with_one_click(tuner: Client, world: World) -> None:
    now = Selection.objects.get()
    other = Candidate.objects.exclude(kernel=now.kernel).filter(result__isnull=False).get()
    assert services.choose(now.bucket, other.kernel, "by hand", None)
    page = tuner.get("/selections").content.decode()
    assert f"/selections/{now.pk}/put-back" in page
    tuner.post(f"/selections/{now.pk}/put-back", {"why": "slower at night"})
    assert Selection.objects.get(until__isnull=True).kernel == now.kernel
    entry = AuditEntry.objects.get(action="put back")
    assert (entry.actor, entry.why) == (User.objects.get(), "slower at night")
    twin = tuner.get("/selections.json").json()
    assert len(twin["buckets"][0]["past"]) == 2


def test_choices_are_downloaded_uploaded_and_moved_by_command(
    tuner: Client, world: World, tmp_path: Path
) -> None:
    text = tuner.get("/selections/export.json").content
    assert json.loads(text) == json.loads(json.dumps(selection_io.export()))
    Selection.objects.all().delete()
    upload = SimpleUploadedFile("selections.json", text)
    tuner.post("/selections/import", {"file": upload, "why": "from the lab"})
    assert Selection.objects.get().chosen_by == User.objects.get()

    file = tmp_path / "selections.json"
    out = StringIO()
    call_command("selections", "export", str(file), stdout=out)
    Selection.objects.all().delete()
    call_command("selections", "import", str(file), stdout=out)
    assert "1 new selections" in out.getvalue()
    for wrong, message_part in ((str(tmp_path / "none"), "No such file"), (__file__, "not JSON")):
        with pytest.raises(CommandError, match=message_part):
            call_command("selections", "import", wrong)


@pytest.mark.parametrize(
    ("form", "field", "line"),
    [
        ({"why": "x"}, "file", "Choose a file."),
        ({"file": b"{"}, "file", "the file is not JSON"),
        ({"file": b"{}", "why": "x" * 501}, "why", "A reason has at most 500 characters."),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line_by_its_field(
    form: dict[str, object], field: str, line: str, tuner: Client, world: World
) -> None:
    content = form.get("file")
    upload = {"file": SimpleUploadedFile("s.json", content)} if content else {}
    answer = tuner.post("/selections/import", {**form, **upload})
    page = answer.content.decode()
    assert answer.status_code == 422
    errors = re.findall(r'<p class="field-error" id="id_(\w+)_error" role="alert">(.*?)</p>', page)
    assert [name for name, _ in errors] == [field]
    assert errors[0][1].startswith(line)


def test_the_command_starts_and_cancels_with_a_budget(world: World) -> None:
    out = StringIO()
    call_command("retune", "tiny", "--budget", "90s", "--why", "nightly job", stdout=out)
    (run,) = new_runs(world)
    assert (run.budget_s, run.why, run.device) == (90, "nightly job", "cpu")
    call_command("retune", "--cancel", str(run.pk), "--why", "wrong one", stdout=out)
    run.refresh_from_db()
    assert run.state == State.CANCELLED
    said = AuditEntry.objects.filter(action__in=("tune", "cancel")).values_list("action", "why")
    assert set(said) == {("tune", "nightly job"), ("cancel", "wrong one")}
    with pytest.raises(CommandError, match="is over"):
        call_command("retune", "--cancel", str(run.pk))
    with pytest.raises(CommandError, match="name a graph"):
        call_command("retune")


def test_progress_says_how_much_time_is_left(world: World) -> None:
    begun = timezone.now() - timedelta(days=20)
    TuningRun.objects.filter(pk=world.run.pk).update(budget_s=60, started_at=begun)
    world.run.tasks.update(spent_s=25)  # nobody worked on it since
    row = run_page(world.run.pk).run
    assert row.time_left_s is not None
    assert 30 < row.time_left_s <= 40
    assert row.budget == "60 s"
    TuningRun.objects.filter(pk=world.run.pk).update(state=State.DONE, finished_at=timezone.now())
    assert run_page(world.run.pk).run.time_left_s is None


def test_a_run_says_which_of_its_work_nobody_takes(tuner: Client, world: World) -> None:
    """Whoever waits for a run learns why, without the metrics."""
    Worker.objects.all().delete()
    node = world.nodes[0]
    tuner.post("/retune", {**FORM, "node": [node.pk], "sizes": "s0=8"})
    (run,) = new_runs(world)

    def said() -> list[tuple[str, str]]:
        shown = tuner.get(run.get_absolute_url()).content.decode()
        return re.findall(r">([^<>]*): no active worker serves the queue ([\w.]+) ", shown)

    assert said() == [("Planning waits", "prepare")]
    assert planning.plan_waiting() == 1
    both = [
        ("Compiling waits", "compile"),
        ("Measuring waits", "measure.cpu"),
    ]
    assert said() == both
    now = timezone.now()
    worker = Worker.objects.create(
        name="w", host="h", pid=1, started_at=now, seen_at=now, queues=["compile", "measure.cpu"]
    )
    assert said() == []
    for change, left in (
        ({"pinned_to": "compile"}, both[1:]),
        ({"pinned_to": "", "control": Control.PAUSE}, both),
        ({"control": Control.GO, "seen_at": now - timedelta(hours=1)}, both),
    ):
        Worker.objects.filter(pk=worker.pk).update(**change)
        assert said() == left
    TuningRun.objects.filter(pk=run.pk).update(state=State.CANCELLED, finished_at=now)
    assert said() == []


def test_the_ledger_and_the_log_are_downloaded(
    client: Client, settings: pytest.FixtureRequest, world: World, tmp_path: Path
) -> None:
    client.force_login(User.objects.create_user("reader"))
    run = world.run
    TuningRun.objects.filter(pk=run.pk).update(started_at=run.created_at)
    for second, row in enumerate(Candidate.objects.filter(task__run=run).order_by("position")):
        Candidate.objects.filter(pk=row.pk).update(
            finished_at=run.created_at + timedelta(seconds=10 - second)
        )
    run.tasks.update(
        title="linear(16x64, 64x64) f32",
        operands=[{"dtype": "f32", "size": [16, 64], "stride": [64, 1]}],
        spent_s=1.5,
    )
    file = tmp_path / "ledger.jsonl"
    file.write_bytes(client.get(f"/runs/{run.pk}/ledger.jsonl").content)
    lines = list(read_jsonl(file).values())
    assert [line["fate"] for line in lines] == ["chosen", "measured", "wrong"]
    assert len(lines[0]["measurement"]["samples_ns"]) == 3
    (curve,) = run_page(run.pk).curves
    assert [(point.tried, point.at_s) for point in curve.points] == [(2, 9.0), (3, 10.0)]

    log = client.get(f"/runs/{run.pk}/autotune.log").content.decode().splitlines()
    assert log[0] == "AUTOTUNE linear(16x64, 64x64) f32 (times of the CPU emulation)"
    assert log[1:3] == ["strides: [64, 1]", "dtypes: torch.float32"]
    assert log[3].split()[:4] == [world.kernels[0].name, "0.1200", "ms", "100.0%"]
    assert log[-1].endswith("takes 1.5000 seconds for 2 choices")


def test_the_strategy_is_kept_with_the_run_and_named_wherever_it_is_shown(
    client: Client, world: World
) -> None:
    client.force_login(User.objects.create_user("reader"))
    run = run_requests.start_run(
        world.graph, "cpu", "cpu", {}, None, budget=Budget(seconds=9), strategy="random"
    )
    page = client.get(f"/runs/{run.pk}")
    assert "Search strategy</dt><dd>random" in page.content.decode()
    assert client.get(f"/runs/{run.pk}.json").json()["run"]["strategy"] == "random"
    assert next(run_ledger(run))["strategy"] == "random"
    assert next(run_ledger(world.run))["strategy"] == "", "without a budget nothing is searched"
    with pytest.raises(UserError, match="unknown search strategy 'best'"):
        run_requests.start_run(world.graph, "cpu", "cpu", {}, None, strategy="best")


def test_every_night_once(world: World) -> None:
    schedule = RetuneSchedule.objects.create(
        occasion=Occasion.NIGHTLY, hour=2, budget_s=30, strategy="local"
    )
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert schedules.run_due(noon) == [], "its first night is to come"
    assert schedules.run_due(noon + timedelta(hours=13)) == []
    (run,) = schedules.run_due(noon + timedelta(hours=15))
    assert (run.graph, run.budget_s, run.bindings) == (world.graph, 30, world.run.bindings)
    assert run.strategy == "local"
    assert run.why == "scheduled every night"
    assert run.priority < 0, "people come first"
    assert schedules.run_due(noon + timedelta(hours=16)) == []
    assert len(schedules.run_due(noon + timedelta(hours=39))) == 1
    RetuneSchedule.objects.filter(pk=schedule.pk).update(enabled=False)
    assert schedules.run_due(noon + timedelta(hours=90)) == []


def test_after_an_import() -> None:
    RetuneSchedule.objects.create(occasion=Occasion.IMPORT, budget_s=30)
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    assert TuningRun.objects.get().graph == graph


def test_the_device_of_a_gpu_is_one_that_measures() -> None:
    """Not one that emulates its instructions, nor one that is modelled: they have its target too,
    and what they would say of time is no measurement."""
    now = timezone.now()
    emulated, unreal = open_device("isa:gfx942").info, modelled_device("model:gfx942")
    assert emulated.target == unreal.target == "gfx942"
    worker = Worker.objects.create(
        name="w",
        host="h",
        pid=1,
        started_at=now,
        seen_at=now,
        devices=[{"id": one.id, "target": one.target} for one in (emulated, unreal)],
    )
    assert retuning.device_for("gfx942") == "rocm:0"
    worker.devices = [*worker.devices, {"id": "rocm:3", "target": "gfx942"}]
    worker.save()
    assert retuning.device_for("gfx942") == "rocm:3"
    worker.devices = [{"id": "cpu-gfx950", "target": "cpu-gfx950"}]
    worker.save()
    assert retuning.device_for("cpu-gfx950") == "cpu-gfx950"


def test_when_a_toolchain_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    RetuneSchedule.objects.create(occasion=Occasion.TOOLCHAIN, budget_s=30)
    assert schedules.run_due() == [], "the first one is no change"
    assert schedules.run_due() == []
    from dataclasses import replace

    new = replace(compilers.toolchain_for("cpu"), version="99")
    with monkeypatch.context() as patch:
        patch.setattr(compilers, "toolchain_for", lambda *_: new)
        assert len(schedules.run_due()) == 1
        assert schedules.run_due() == []
    assert schedules.run_due() == [], "hosts with different compilers are no change each time"


def test_schedules_are_made_in_the_admin_by_those_who_may_tune(tuner: Client, world: World) -> None:
    data = {"occasion": "nightly", "on": "cpu cpu", "hour": 3, "priority": -5}
    data["strategy"] = "random"
    address = "/admin/codegen_app/retuneschedule/add/"
    assert "Enter a limit" in tuner.post(address, data).content.decode()
    assert tuner.post(address, {**data, "budget_s": 60, "enabled": "on"}).status_code == 302
    made = RetuneSchedule.objects.get()
    assert made.strategy == "random"
    assert made.made_by == User.objects.get()
    assert AuditEntry.objects.filter(action="schedule").count() == 1
    User.objects.get().user_permissions.clear()
    assert tuner.get(address).status_code == 403
