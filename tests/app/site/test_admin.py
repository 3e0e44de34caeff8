"""The admin: what can be done there goes through the services, and a list costs the same for many
rows as for few."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import tokens
from codegen_app.accounts.models import AuditEntry, Identity
from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.kernels.models import Build, Modelling, Packing
from codegen_app.tracking.models import RetentionPolicy
from codegen_app.tuning.models import (
    BenchmarkResult,
    Candidate,
    RetuneSchedule,
    Selection,
    TuningRun,
    TuningTask,
)
from codegen_app.tuning.services import quarantine, schedules
from codegen_app.workers.models import State, Worker
from tests.app import factories
from tests.support.queries import most, queries_of, statements_of

pytestmark = pytest.mark.django_db

LIST = "/admin/codegen_app/{}/"
DELETABLE = {"graph", "datum", "foreignkernel", "identity", "retuneschedule", "retentionpolicy"}


def act(client: Client, model: str, action: str, *rows: int, why: str = "it is mended") -> str:
    """Do an action with rows, as the list's form sends it."""
    data = {"action": action, "_selected_action": rows, "why": why}
    answer = client.post(LIST.format(model), data, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def quarantined_task() -> TuningTask:
    """Of a run that ended with it, with a candidate that was put aside."""
    task = factories.task()
    factories.candidate(task, build=factories.done_build())
    aside = {"state": State.QUARANTINED, "reason": "its worker died 3 times"}
    Candidate.objects.update(**aside, stage="crash", finished_at=timezone.now())
    TuningTask.objects.update(**aside, deaths=3, finished_at=timezone.now())
    now = timezone.now()
    TuningRun.objects.update(**aside, finished_at=now, planned_at=now, started_at=now)
    task.refresh_from_db()
    return task


def test_a_quarantined_task_is_released_with_its_run(
    admin_client: Client, admin_user: User
) -> None:
    task = quarantined_task()
    assert "1 row is queued again" in act(admin_client, "tuningtask", "release", task.pk)
    task.refresh_from_db()
    task.run.refresh_from_db()
    (candidate,) = task.candidates.all()
    assert (task.state, task.deaths, task.finished_at) == (State.QUEUED, 0, None)
    assert (task.run.state, task.run.finished_at, task.run.reason) == (State.RUNNING, None, "")
    assert (candidate.state, candidate.stage) == (State.QUEUED, "")
    entry = AuditEntry.objects.get(action="release")
    assert (entry.actor, entry.why) == (admin_user, "it is mended")
    assert "0 rows are queued again" in act(admin_client, "tuningtask", "release", task.pk)


def test_a_task_of_a_cancelled_run_stays_where_it_is() -> None:
    task = quarantined_task()
    TuningRun.objects.update(state=State.CANCELLED, cancelled_at=timezone.now())
    assert not quarantine.release(task, None)
    task.refresh_from_db()
    assert task.state == State.QUARANTINED


def test_releasing_needs_the_permission(client: Client) -> None:
    task = quarantined_task()
    user = User.objects.create_user("looker", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_tuningtask"))
    client.force_login(user)
    act(client, "tuningtask", "release", task.pk)
    task.refresh_from_db()
    assert task.state == State.QUARANTINED
    user.user_permissions.add(Permission.objects.get(codename="retune"))
    act(client, "tuningtask", "release", task.pk)
    task.refresh_from_db()
    assert task.state == State.QUEUED


@pytest.mark.parametrize("what", ["graph", "build"])
def test_other_work_is_released_too(admin_client: Client, what: str) -> None:
    row = factories.graph() if what == "graph" else factories.build()
    aside = {"state": State.QUARANTINED, "reason": "a bug", "finished_at": timezone.now()}
    type(row)._default_manager.filter(pk=row.pk).update(**aside)
    act(admin_client, what, "release", row.pk)
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.QUEUED, "")


def test_a_failed_build_is_asked_for_again(admin_client: Client) -> None:
    build = factories.build(state=State.REJECTED, reason="no space", finished_at=timezone.now())
    page = act(admin_client, "build", "build_again", build.pk)
    assert "1 build is requested" in page
    assert Build.objects.filter(kernel=build.kernel, state=State.QUEUED, requested=True).exists()
    assert AuditEntry.objects.filter(action="build").exists()


def test_an_earlier_choice_serves_again(admin_client: Client, admin_user: User) -> None:
    problem = factories.task().problem
    environment = factories.environment()
    result = factories.result(
        factories.done_build(), 100.0, problem=problem, environment=environment
    )
    common = {
        "problem": result.problem, "target": "cpu", "device_name": "CPU emulation",
        "result": result, "since": timezone.now(),
    }  # fmt: skip
    before = Selection.objects.create(
        kernel=result.kernel, reason="fastest", until=timezone.now(), **common
    )
    other = factories.kernel()
    Selection.objects.create(kernel=other, reason="fastest", **common)
    page = act(admin_client, "selection", "put_back", before.pk, why="the other is wrong")
    assert f"{result.kernel.name} is selected" in page
    serving = Selection.objects.get(until=None)
    assert (serving.kernel, serving.chosen_by) == (result.kernel, admin_user)
    assert serving.reason == "put back: the other is wrong"
    assert "is already selected" in act(admin_client, "selection", "put_back", before.pk)


def test_a_cancelled_run_says_why(admin_client: Client) -> None:
    task = factories.task()
    page = act(admin_client, "tuningrun", "cancel", task.run.pk, why="the host is needed")
    assert "1 run is cancelled." in page
    assert AuditEntry.objects.get(action="cancel").why == "the host is needed"


def worker(name: str, *devices: tuple[str, str, str], ago: int = 0) -> Worker:
    """One that has these devices: id, target, name."""
    moment = timezone.now() - timedelta(hours=ago)
    return Worker.objects.create(
        name=name, host=name, pid=1, started_at=moment, seen_at=moment,
        devices=[{"id": one, "target": target, "name": title} for one, target, title in devices],
    )  # fmt: skip


def form_of(client: Client) -> dict[str, object]:
    """What the form of a new schedule is filled in with."""
    form = client.get(LIST.format("retuneschedule") + "add/").context["adminform"].form
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def test_a_new_schedule_is_of_a_device_that_is_there(
    admin_client: Client, admin_user: User
) -> None:
    worker("gone", ("rocm:0", "gfx942", "MI300X"), ago=5)
    worker("here", ("cpu", "cpu", "CPU emulation"), ("cuda:0", "sm_90", "H200"))
    worker("emulates", ("isa:gfx942", "gfx942", "instructions, emulated"))
    page = admin_client.get(LIST.format("retuneschedule") + "add/").content.decode()
    given = form_of(admin_client)
    assert given["on"] == "sm_90 cuda:0"
    assert "gfx942 on rocm:0: MI300X; offline" in page
    assert "isa:gfx942" not in page, "nothing is timed there"
    graph = factories.graph(state=State.DONE, finished_at=timezone.now())
    answer = admin_client.post(LIST.format("retuneschedule") + "add/", {**given, "graph": graph.pk})
    assert answer.status_code == 302, answer.context["errors"]
    row = RetuneSchedule.objects.get()
    assert (row.target, row.device, row.graph) == ("sm_90", "cuda:0", graph)
    assert (row.occasion, row.made_by) == ("nightly", admin_user)
    (run,) = schedules.start_now(row, admin_user)
    assert (run.target, run.device, run.strategy) == ("sm_90", "cuda:0", row.strategy)


def test_without_any_worker_a_modelled_board_is_offered(admin_client: Client) -> None:
    assert "model:" in str(form_of(admin_client)["on"])


def test_a_schedule_that_could_never_run_is_refused(admin_client: Client) -> None:
    worker("here", ("cpu", "cpu", "CPU emulation"))
    graph = factories.graph(state=State.DONE, finished_at=timezone.now())
    given = form_of(admin_client) | {"occasion": "import", "graph": graph.pk}
    page = admin_client.post(LIST.format("retuneschedule") + "add/", given).content.decode()
    assert "it tunes the imported model" in page
    given |= {"occasion": "nightly", "on": "gfx942 rocm:7"}
    page = admin_client.post(LIST.format("retuneschedule") + "add/", given).content.decode()
    assert "Select a valid choice" in page
    assert not RetuneSchedule.objects.exists()


def test_a_schedule_keeps_a_device_that_is_gone(admin_client: Client) -> None:
    row = RetuneSchedule.objects.create(
        occasion="nightly", target="gfx942", device="rocm:3", budget_s=60
    )
    address = f"{LIST.format('retuneschedule')}{row.pk}/change/"
    form = admin_client.get(address).context["adminform"].form
    assert form["on"].value() == "gfx942 rocm:3"


def test_schedules_are_started_and_switched(admin_client: Client) -> None:
    factories.graph(state=State.DONE, finished_at=timezone.now())
    row = RetuneSchedule.objects.create(occasion="nightly", budget_s=60)
    assert "1 run is requested" in act(admin_client, "retuneschedule", "start_now", row.pk)
    act(admin_client, "retuneschedule", "switch_off", row.pk)
    row.refresh_from_db()
    assert (row.enabled, row.last_at) == (False, None)
    page = act(admin_client, "retuneschedule", "switch_off", row.pk)
    assert "0 schedules are switched off" in page


def test_who_may_schedule_finds_a_graph_by_its_name(client: Client) -> None:
    graph = factories.graph(name="llama3")
    user = User.objects.create_user("planner", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="schedule"))
    client.force_login(user)
    field = {"app_label": "codegen_app", "model_name": "retuneschedule", "field_name": "graph"}
    found = client.get("/admin/autocomplete/", {**field, "term": "llam"})
    assert [one["id"] for one in found.json()["results"]] == [str(graph.pk)]


def make_rows(count: int) -> None:
    """Rows of each kind that a site has many of, none of which shares its relations."""
    for _ in range(count):
        graph = factories.graph()
        run = TuningRun.objects.create(graph=graph, device="cpu", target="cpu")
        task = factories.task(run=run)
        build = factories.done_build()
        result = factories.result(
            build, 100.0, problem=task.problem, environment=factories.environment()
        )
        factories.candidate(
            task, build=build, result=result, state=State.DONE, finished_at=timezone.now()
        )
        Selection.objects.create(
            problem=task.problem, target="cpu", device_name="d", kernel=build.kernel,
            result=result, reason="fastest", since=timezone.now(),
        )  # fmt: skip
        Modelling.objects.create(build=build, board="MI300X", version=1)
        Packing.objects.create(graph=graph, key=factories.digest(), kernels=3)
        TorchComparison.objects.create(graph=graph)
        somebody = User.objects.create_user(factories.digest())
        Identity.objects.create(user=somebody, issuer="https://i", subject=factories.digest())


@pytest.mark.full
def test_a_list_asks_as_much_of_many_rows_as_of_few(admin_client: Client) -> None:
    make_rows(2)
    few = {model: statements_of(read, admin_client, model) for model in ours()}
    make_rows(20)
    assert BenchmarkResult.objects.count() == Candidate.objects.count() == 22
    assert {model: queries_of(read, admin_client, model) for model in ours()} == {
        model: len(found) for model, found in few.items()
    }
    assert max(map(len, few.values())) <= most(8)
    by_hand = ("retentionpolicy", "retuneschedule")  # of which people make a few
    for model, found in few.items():
        if model in by_hand:
            continue
        counts = [sql for sql in found if "COUNT(" in sql]
        assert all("LIMIT" in sql for sql in counts), (model, counts)


def ours() -> list[str]:
    """The names of our models in the admin."""
    admin.autodiscover()  # else the first request of this process does it
    registered = admin.site._registry
    return sorted(
        model._meta.model_name for model in registered if model._meta.app_label == "codegen_app"
    )


def read(client: Client, model: str) -> None:
    assert client.get(LIST.format(model)).status_code == 200


def test_no_list_reads_sources_or_logs(admin_client: Client) -> None:
    make_rows(1)
    for model in ours():
        for sql in statements_of(read, admin_client, model):
            assert '"codegen_app_generatedkernel"."source",' not in sql, model
            assert '"codegen_app_build"."log"' not in sql, model
            assert '"codegen_app_graph"."wrapper"' not in sql, model


def test_who_is_who_at_the_provider_is_seen_and_unlinked(admin_client: Client) -> None:
    ada = User.objects.create_user("ada")
    row = Identity.objects.create(user=ada, issuer="https://id.example", subject="248289761001")
    page = admin_client.get(LIST.format("identity")).content.decode()
    assert all(words in page for words in ("ada", "248289761001", "https://id.example"))
    assert admin_client.get(LIST.format("identity") + "add/").status_code == 403
    deleted = admin_client.post(LIST.format("identity") + f"{row.pk}/delete/", {"post": "yes"})
    assert deleted.status_code == 302
    assert not Identity.objects.exists()
    assert AuditEntry.objects.filter(action="delete").count() == 1, "once, and it is noted"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_admin_has_the_products_header_and_theme(admin_client: Client, theme: str) -> None:
    admin_client.cookies["theme"] = theme
    factories.candidate(factories.task())
    for address in ("/admin/", LIST.format("candidate"), LIST.format("retuneschedule") + "add/"):
        page = admin_client.get(address).content.decode()
        assert f'data-theme="{theme}"' in page, address
        assert 'class="topbar"' in page, address
        assert "css/web/admin" in page, address
        assert not re.search(r"<script(?![^>]*src=)(?![^>]*application/json)[^>]*>", page), address
        assert "dark_mode" not in page, address


def test_deletion_is_offered_only_where_nothing_depends_on_the_rows(admin_client: Client) -> None:
    make_rows(1)
    offered, accepted = set(), set()
    for model in ours():
        listed = admin_client.get(LIST.format(model))
        actions = admin.site.get_model_admin(apps.get_model("codegen_app", model)).get_actions(
            listed.wsgi_request
        )
        offered |= {model} if "delete_selected" in actions else set()
        for row in listed.context["cl"].result_list[:1]:
            page = admin_client.get(f"{LIST.format(model)}{row.pk}/change/").content.decode()
            assert ("deletelink" in page) == (model in DELETABLE), model
        deleted = admin_client.post(f"{LIST.format(model)}1/delete/")
        accepted |= {model} if deleted.status_code != 403 else set()
    assert offered == accepted == DELETABLE


def test_a_user_is_deleted_with_the_tokens(admin_client: Client) -> None:
    ada = User.objects.create_user("ada")
    tokens.create_token(ada, "CI", ["read"], None)
    address = f"/admin/auth/user/{ada.pk}/delete/"
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="ada").exists()


@pytest.mark.parametrize("model", ["retuneschedule", "retentionpolicy"])
def test_deleted_settings_are_recorded(admin_client: Client, model: str) -> None:
    row = (
        RetuneSchedule.objects.create(occasion="nightly", budget_s=60)
        if model == "retuneschedule"
        else RetentionPolicy.objects.create(name="old", what="deliveries", days=30)
    )
    before = AuditEntry.objects.count()
    data = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    assert admin_client.post(LIST.format(model), data).status_code == 302
    assert not type(row).objects.filter(pk=row.pk).exists()
    assert AuditEntry.objects.count() == before + 1


def test_lists_have_units_and_their_own_pages(admin_client: Client) -> None:
    make_rows(1)
    page = admin_client.get(LIST.format("benchmarkresult")).content.decode()
    assert "Median, µs" in page
    assert "Interval, µs" in page
    graph = Graph.objects.get()
    address = f"{LIST.format('graph')}{graph.pk}/change/"
    assert f'href="{graph.get_absolute_url()}"' in admin_client.get(address).content.decode()
