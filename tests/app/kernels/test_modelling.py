"""Modellings as work: asked for once, done by a worker, cancelled, tried again, kept, removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.accounts.models import AuditEntry
from codegen_app.kernels.modelling import automatic, jobs, requests
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse, Modelling
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.kernels.services import builds
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.site import periodic_jobs, queued_work, retention
from codegen_app.tuning.services import selections
from codegen_app.workers import queue, work
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.cycles import report_json
from scheduler.cycles.report import VERSION, Report
from scheduler.errors import MachineError, UserError
from tests.app import factories
from tests.support import modelled
from tests.support.pages_world import World, make_build, store_report

# Workers and threads have connections of their own, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

LISTING = modelled.listing(["s_nop 0"])
Modeller = Callable[[Modelling], Report]


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compiles is not what these tests are about."""
    monkeypatch.setattr(builds, "local_builds", Build.objects.none)


@pytest.fixture
def modeller(monkeypatch: pytest.MonkeyPatch) -> Callable[[Modeller], None]:
    """Puts a function into the place of the model."""
    return lambda model: monkeypatch.setattr(jobs, "_report", model)


def report_of(row: Modelling) -> Report:
    """A report of one instruction."""
    return modelled.report(LISTING, row.build.target, row.board, sizes=row.sizes)


def use_of(kernel: GeneratedKernel) -> KernelUse:
    return KernelUse.objects.filter(kernel=kernel).select_related("kernel")[0]


def boards(*targets_: str) -> list[Any]:
    return [targets.boards(name)[0] for name in targets_]


def asked(world: World, *targets_: str) -> list[Modelling]:
    use = use_of(world.kernels[0])
    return requests.request_modelling(use, boards(*(targets_ or ("gfx942",))), {"s0": 128}, None)


def test_it_is_asked_for_on_the_page_and_made_by_a_worker(
    tuner: Client, world: World, modeller: Callable[[Modeller], None]
) -> None:
    kernel = world.kernels[0]
    form = {"board": ["gfx942 MI300X", "gfx1100 RX 7900 XTX"], "sizes": "s0=128"}
    answer = tuner.post(f"/kernels/{kernel.name}/model", form)
    one, other = Modelling.objects.order_by("board")
    assert (
        answer.headers["Location"]
        == f"{kernel.get_absolute_url()}?model={one.pk}&tab=modelled#modelled"
    )
    assert {one.sizes["s0"], other.sizes["s0"]} == {128}
    assert [row.build.target for row in (one, other)] == ["gfx942", "gfx1100"]
    assert AuditEntry.objects.filter(action="model").count() == 2
    page = tuner.get(f"/kernels/{kernel.name}?model={one.pk}").content.decode()
    assert 'part=modelled" hx-trigger="every 2s"' in page

    modeller(report_of)
    tasks.compile()
    one.refresh_from_db()
    assert (one.state, one.code_digest) == (State.DONE, one.build.code_digest)
    assert one.low_us < one.time_us < one.high_us
    assert "conflict" in one.sentence
    whole = tuner.get(f"/modelled/{one.pk}/report.json").content
    assert report_json.read(whole) == report_of(one)
    inner = tuner.get(f"/kernels/{kernel.name}?part=modelled", headers={"HX-Request": "true"})
    assert inner.headers["HX-Refresh"] == "true", "there is more to show than the list"


def test_what_there_is_is_not_made_again(
    world: World, modeller: Callable[[Modeller], None]
) -> None:
    (row,) = asked(world)
    assert asked(world) == [row]
    modeller(report_of)
    tasks.compile()
    (again,) = asked(world)
    assert (again.pk, again.state) == (row.pk, State.DONE)
    assert AuditEntry.objects.filter(action="model").count() == 1

    Build.objects.filter(pk=row.build_id).update(code_digest="0" * 64)
    (of_other_code,) = asked(world)
    assert (of_other_code.pk, of_other_code.state) == (row.pk, State.QUEUED)
    tasks.compile()
    row.refresh_from_db()
    assert row.report is not None
    default_storage.delete(row.report.path)
    assert asked(world)[0].state == State.QUEUED, "its report was lost"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({}, "No board is selected"),
        ({"board": "gfx942 H100"}, "gfx942 H100 is not a supported board"),
        ({"board": "gfx942 MI300X", "sizes": "s7=3"}, "no symbolic size &#x27;s7&#x27;"),
        ({"board": "gfx942 MI300X", "sizes": "s0=1"}, "s0=1 is out of the bounds"),
        ({"board": "gfx942 MI300X", "sizes": "64"}, "64 is not a size"),
    ],
)
def test_a_mistake_is_one_line_of_the_page(
    form: dict[str, str], says: str, tuner: Client, world: World
) -> None:
    answer = tuner.post(f"/kernels/{world.kernels[0].name}/model", form)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert not Modelling.objects.exists()


def test_a_kernel_that_nothing_calls_cannot_be_modelled(tuner: Client) -> None:
    kernel = factories.kernel()
    assert (
        tuner.post(f"/kernels/{kernel.name}/model", {"board": "gfx942 MI300X"}).status_code == 404
    )
    assert tuner.get(f"/kernels/{kernel.name}").status_code == 200


def test_a_build_that_is_not_there_is_asked_for_and_waited_for(
    world: World, modeller: Callable[[Modeller], None]
) -> None:
    (row,) = asked(world, "gfx950")
    assert (row.build.target, row.build.state, row.build.requested) == ("gfx950", "queued", True)
    modeller(report_of)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.attempts) == (State.QUEUED, 0), "it has no instructions yet"
    Build.objects.filter(pk=row.build_id).update(state=State.REJECTED, reason="no such header")
    periodic_jobs.run_maintenance()
    row.refresh_from_db()
    assert (row.state, row.stage) == (State.REJECTED, "compile")
    assert row.reason == "the kernel was not built: no such header"


def test_the_place_of_a_build_is_taken_by_that_of_another_compiler(world: World) -> None:
    (row,) = asked(world, "gfx950")
    old = row.build
    Build.objects.filter(pk=old.pk).update(toolchain_digest="0" * 64)
    assert builds.replace_orphaned() == 1
    row.refresh_from_db()
    assert row.build_id != old.pk
    assert (row.state, row.build.target) == (State.QUEUED, "gfx950")


def _user_error(_: Modelling) -> Report:
    raise UserError("a grid of 0 blocks")


def _lost(_: Modelling) -> Report:
    raise FileNotFoundError("gone")


@pytest.mark.parametrize(
    ("fails", "stage", "says"),
    [(_user_error, "run", "a grid of 0 blocks"), (_lost, "load", "build the kernel again")],
)
def test_a_failure_is_one_line_and_can_be_asked_for_again(
    fails: Modeller,
    stage: str,
    says: str,
    world: World,
    reader: Client,
    modeller: Callable[[Modeller], None],
) -> None:
    (row,) = asked(world)
    modeller(fails)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.stage) == (State.REJECTED, stage)
    assert row.reason.endswith(says)
    assert (
        row.reason in reader.get(f"/kernels/{world.kernels[0].name}?tab=modelled").content.decode()
    )
    modeller(report_of)
    asked(world)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.stage, row.reason) == (State.DONE, "", "")


def test_what_the_machine_lacks_is_tried_again(
    world: World, modeller: Callable[[Modeller], None]
) -> None:
    def full(_: Modelling) -> Report:
        raise MachineError("the disk is full")

    (row,) = asked(world)
    modeller(full)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.faults) == (State.QUEUED, 1)
    assert "the disk is full" in row.reason


def test_who_may_build_cancels_it_and_its_outcome_is_void(
    tuner: Client, world: World, modeller: Callable[[Modeller], None]
) -> None:
    (row,) = asked(world)

    def cancelled_meanwhile(held: Modelling) -> Report:
        tuner.post(f"/modelled/{held.pk}/cancel")
        return report_of(held)

    modeller(cancelled_meanwhile)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.report) == (State.CANCELLED, None)
    tuner.post(f"/modelled/{row.pk}/cancel")
    assert AuditEntry.objects.filter(action="cancel").count() == 1


def test_a_row_of_a_dead_worker_is_given_on(world: World) -> None:
    (row,) = asked(world)
    held = work.claim_next(jobs.queued_modellings(), "host:1")
    assert held is not None
    Modelling.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(days=1))
    work.requeue_expired()
    with pytest.raises(work.LeaseLostError):
        work.finish(held, State.REJECTED, reason="late")
    row.refresh_from_db()
    assert row.state == State.QUEUED


def test_workers_are_told_of_what_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(world)
    told: list[queue.Kind] = []
    monkeypatch.setattr(queued_work, "notify", lambda kind, *_, **__: told.append(kind))
    queued_work.notify_workers()
    assert queue.Kind.COMPILE in told


def test_other_versions_go_and_reports_that_are_shown_stay(world: World) -> None:
    (row,) = asked(world)
    kept = store_report(row.build, "MI300X", {"s0": 128}, report_of(row))
    old = store_report(row.build, "MI300X", {"s0": 64}, replace(report_of(row), sampled="all"))
    Modelling.objects.filter(pk=old.pk).update(version=VERSION + 1)
    Artifact.objects.update(used_at=timezone.now() - 2 * retention.UNUSED_AGE)
    retention.sweep(dry_run=True)
    assert Modelling.objects.count() == 2
    assert retention.sweep()["modelled reports"] == 1
    assert kept.report is not None
    assert old.report is not None
    assert artifacts.is_whole(kept.report)
    assert not Artifact.objects.filter(pk=old.report_id).exists()


def test_it_goes_with_its_build(world: World) -> None:
    build = factories.build(kernel=world.kernels[0], target="gfx942", state=State.CANCELLED)
    row = store_report(build, "MI300X", {}, modelled.report(LISTING)) if build.code_digest else None
    assert row is None, "a build without code cannot have a report"
    Modelling.objects.create(build=build, board="MI300X", version=VERSION)
    build.delete()
    assert not Modelling.objects.exists()


def test_defaults_are_modelled_unasked_once_they_are_built(
    world: World, settings: Any, modeller: Callable[[Modeller], None]
) -> None:
    settings.MODEL_AUTOMATICALLY = True
    default, other = world.kernels
    built = default.builds.get(target="gfx942")
    for build in (built, default.builds.get(target="gfx1100")):
        automatic.model_default(build)
        automatic.model_default(build)
    automatic.model_default(factories.build(kernel=default, target="gfx942", flags=["-O1"]))
    automatic.model_default(factories.build(kernel=other, target="gfx942"))
    automatic.model_default(factories.build(kernel=default, target="sm_90"))
    rows = Modelling.objects.order_by("build__target")
    assert [(row.board, row.sizes) for row in rows] == [
        ("RX 7900 XTX", {"s0": 64}),
        ("MI300X", {"s0": 64}),
    ]
    (mine,) = requests.request_modelling(use_of(default), boards("gfx942"), {"s0": 128}, None)
    first = work.claim_next(jobs.queued_modellings(), "w")
    assert first == mine, "what somebody asked for comes before"


def test_what_a_run_selects_is_modelled_at_its_sizes(world: World, settings: Any) -> None:
    settings.MODEL_AUTOMATICALLY = True
    build = world.kernels[0].builds.get(target="gfx942")
    assert world.nodes[0].problem is not None
    result = factories.result(
        build,
        2000.0,
        problem=world.nodes[0].problem,
        environment=factories.environment(),
        bindings={"s0": 16},
    )
    with transaction.atomic():
        selections.offer(result, "run 1")
    (row,) = Modelling.objects.all()
    assert (row.board, row.sizes, row.build) == ("MI300X", {"s0": 16}, build)


@pytest.mark.full
def test_a_kernel_of_a_sample_by_the_model_itself(reader: Client, cache: CodeCache) -> None:
    """Nothing in the model's place: the graph's tensors, the build's instructions, a real board."""
    node = factories.small_node(factories.prepared_graph())
    use = KernelUse.objects.select_related("kernel", "template_node__problem").get(
        template_node=node, is_default=True
    )
    build = make_build(use.kernel, "gfx942", cache.root)
    (row,) = requests.request_modelling(use, boards("gfx942"), {}, None)
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.reason, row.unknown) == (State.DONE, "", {})
    assert row.sizes == {name: each["hint"] for name, each in node.problem.symbols.items()}
    found = kernel_page(use.kernel.name, build.pk, None)
    shown, listing = found.modelled.shown, found.listing
    assert shown is not None
    assert listing is not None
    of_kind = {listing.lines[number - 1].kind for number in shown.by_line}
    assert of_kind == {"instruction"}, "figures stand at instructions, the executed ones"
    assert all(row.executed > 0 for row in shown.by_line.values())
    assert shown.lines, "the source is heated"
    ended = [one for one in shown.instructions if one.text == "s_endpgm"]
    assert sum(one.executed for one in ended) == 1, "each wave ends once"
    page = reader.get(f"{use.kernel.get_absolute_url()}?model={row.pk}").content.decode()
    assert "data-timeline" in page
    assert row.sentence.split(";")[0] in page
