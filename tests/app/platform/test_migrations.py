"""Migrations: what databases of before hold is found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from codegen_app.accounts.models import ApiToken, AuditEntry, Identity
from codegen_app.graphs.models import GraphNode, TorchComparison
from codegen_app.kernels.models import (
    Build,
    ForeignKernel,
    InstructionUse,
    KernelUse,
    Mnemonic,
    Modelling,
    Packing,
    ProblemWork,
)
from codegen_app.platform.models import Message, Round
from codegen_app.remote.models import RemoteLease
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertRun,
    Baseline,
    Batch,
    Change,
    Channel,
    ChannelKind,
    Conditions,
    Datum,
    Delivery,
    EventKind,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
    RetentionPolicy,
    Revision,
    Series,
    SeriesRule,
    Withdrawal,
)
from codegen_app.tracking.services import history
from codegen_app.tuning.models import (
    BenchmarkResult,
    Candidate,
    ResultImport,
    RetuneSchedule,
    Selection,
    TuningRun,
    TuningTask,
)
from codegen_app.tuning.queries.ledger import run_ledger
from codegen_app.web.pagecache import triggers
from codegen_app.workers.models import Worker
from tests.app import factories, track_factories
from tests.support.foreign_kernels import looked_at

pytestmark = pytest.mark.django_db(transaction=True)
APP = "codegen_app"
TIED = "tied: within the noise of the fastest"


def migrate(name: str | None) -> Any:
    """Go to a migration (None: before the first); the models as they are there."""
    executor = MigrationExecutor(connection)
    executor.migrate([(APP, name)])
    return executor.loader.project_state((APP, name)).apps if name else None


@pytest.fixture
def latest() -> Iterator[str]:
    """The last migration's name; the database is there again afterwards."""
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes(APP)
    (name,) = [name for _, name in leaves]
    yield name
    migrate(name)
    triggers.create_triggers()  # the tables are new


def tables() -> list[str]:
    """Those of the application."""
    return [name for name in connection.introspection.table_names() if name.startswith(APP)]


def a_result(models: Any, build: Build, task: TuningTask) -> Any:
    """Three samples of the emulation, in the models of some migration."""
    environment, _ = models.get_model(APP, "Environment").objects.get_or_create(
        digest="e",
        defaults={
            **{"device": "cpu", "device_name": "CPU", "target": "cpu", "compiler": "c"},
            **{"compute_units": 1, "memory_bytes": 1, "emulated": True},
        },
    )
    return models.get_model(APP, "BenchmarkResult").objects.create(
        **{"kernel_id": build.kernel_id, "build_id": build.pk, "problem_id": task.problem_id},
        **{"environment_id": environment.pk, "samples_ns": [4.0, 5.0, 6.0], "batch": 1},
        **{"median_ns": 5.0, "low_ns": 4.0, "high_ns": 6.0, "emulated": True},
        **{"check_max_error": 0, "check_bound": 1, "check_ratio": 0},
    )


@pytest.mark.long
def test_what_earlier_schemas_said_otherwise_is_known(latest: str) -> None:
    """Ties and strategies of runs, the time of a result among its metrics."""
    task, build = factories.task(), factories.build()
    tied, other = factories.candidate(task), factories.candidate(task)
    made = a_result(migrate("0006_source_file"), build, task)
    old = migrate("0003_problem_work")
    result = a_result(old, tied.build, task)
    now = task.run.created_at
    before = old.get_model(APP, "Candidate").objects
    done = {"state": "done", "result_id": result.pk, "finished_at": now}
    before.filter(pk=tied.pk).update(reason=TIED, **done)
    rejected = {"state": "rejected", "stage": "check", "reason": "wrong", "finished_at": now}
    before.filter(pk=other.pk).update(**rejected)

    migrate(latest)
    rows = {row.pk: (row.tied, row.reason) for row in Candidate.objects.all()}
    assert rows == {tied.pk: (True, ""), other.pk: (False, "wrong")}
    run = TuningRun.objects.get()
    assert run.strategy == "guided", "there was no other"
    lines = [line for line in run_ledger(run) if line["record"] == "candidate"]
    assert [line["tied"] for line in lines] == [True, False]
    metrics = BenchmarkResult.objects.get(pk=made.pk).all_metrics
    assert list(metrics) == ["time"]
    time = metrics["time"]
    assert (time.value, time.low, time.high, time.unit, time.n) == (5.0, 4.0, 6.0, "ns", 3)

    again = migrate("0004_search_strategy").get_model(APP, "Candidate").objects
    assert again.get(pk=tied.pk).reason == TIED


def rows_of_every_kind() -> dict[Any, int]:
    """Among them what only later schemas allow: choices at two sizes, a cancelled candidate
    without a kernel. How many there are of each model."""
    task = factories.task()
    made = factories.candidate(task).build
    Candidate.objects.create(task=task, position=7, state="cancelled", reason="cancelled")
    environment = factories.environment()
    GraphNode.objects.create(graph=task.run.graph, position=0, name="n", target="aten.mm")
    KernelUse.objects.create(kernel=made.kernel, template_node=task.template_node, position=0)
    for size in (1, 2):
        result = factories.result(
            made, 5.0, problem=task.problem, environment=environment, bindings={"s0": size}
        )
        Selection.objects.create(
            **{"problem": task.problem, "kernel": made.kernel, "result": result},
            **{"target": "cpu", "device_name": "CPU", "bindings": {"s0": size}},
            **{"toolchain": "c 1", "reason": "faster", "since": timezone.now()},
        )
    RetuneSchedule.objects.create(occasion="nightly")
    AuditEntry.objects.create(action="import", what="model")
    now = timezone.now()
    Worker.objects.create(name="w", host="h", pid=1, started_at=now, seen_at=now)
    RemoteLease.objects.create(key="k", worker=Worker.objects.get(), task=task, claim="w c")
    Message.objects.create(queue="compile")
    Packing.objects.create(graph=task.run.graph, key="k", kernels=1)
    Modelling.objects.create(build=result.build, board="MI300X", version=1)
    TorchComparison.objects.create(graph=task.run.graph)
    mnemonic = Mnemonic.objects.create(name="v_add_f32")
    InstructionUse.objects.create(mnemonic=mnemonic, build=made, count=2)
    looked_at()
    ResultImport.objects.create(run=task.run, digest="d", measured_at=now)
    Round.objects.create(name="look after", begun_at=now)
    work = {"read_bytes": 1, "written_bytes": 1, "matrix_flops": 1, "vector_ops": 1}
    ProblemWork.objects.create(problem=task.problem, **work)
    token = ApiToken.objects.create(
        digest="d", prefix="kiln_", name="t", scopes=["read"], owner=User.objects.create_user("u")
    )
    history.add_result(result)
    Datum.objects.update(batch=Batch.objects.create(token=token, key="k", body_digest="d"))
    rows_of_tracking()
    Identity.objects.create(user=token.owner, issuer="https://login.example", subject="1")
    return {
        model: model._default_manager.count() for model in apps.get_app_config(APP).get_models()
    }


def rows_of_tracking() -> None:
    alert = track_factories.regression("gemm")
    series = alert.changes.get().series
    event = AlertEvent.objects.create(alert=alert, kind=EventKind.RAISED)
    channel = Channel.objects.create(
        name="c", kind=ChannelKind.WEBHOOK, address="https://a", alerts=[AlertKind.REGRESSION]
    )
    now = timezone.now()
    Delivery.objects.create(channel=channel, event=event, key=uuid4(), next_at=now)
    SeriesRule.objects.create(series=series, muted=True, reason="noisy")
    Baseline.objects.create(series=series, at=now, reason="new device")
    RetentionPolicy.objects.create(name="p", days=30)
    change = alert.changes.get()
    Withdrawal.objects.create(series=series, datum=change.datum, reason="another tenant")
    AlertRun.objects.create(alert=alert, series=series, run=TuningRun.objects.first())
    again = Remeasurement.objects.create(alert=alert, series=series, boundary=now)
    RemeasuredPoint.objects.create(remeasurement=again, original=change.datum)
    MeasurementRequest.objects.create(alert=alert, series=series, revision=change.revision)


#: What the first schema had no table for.
LATER = {
    *(AlertRun, Remeasurement, RemeasuredPoint, MeasurementRequest),
    *(Alert, AlertEvent, Change, Channel, Delivery, SeriesRule, Baseline, RetentionPolicy),
    *(RetuneSchedule, ProblemWork, Message, Round, Packing, ResultImport, Modelling),
    *(ForeignKernel, Mnemonic, InstructionUse, RemoteLease, TorchComparison),
    *(Identity, ApiToken, Batch, Series, Revision, Conditions, Datum, Withdrawal),
}


@pytest.mark.full
def test_the_chain_goes_down_and_up_with_data(latest: str) -> None:
    counts = rows_of_every_kind()
    assert all(counts.values()), "a row of each model"
    migrate("0001_initial")
    with transaction.atomic():  # and up again from there, as every test database has come
        migrate(None)
        assert not tables()
        transaction.set_rollback(True)
    migrate(latest)
    for model, count in counts.items():
        assert model._default_manager.count() == (0 if model in LATER else count), model
    now_serving = Selection.objects.filter(until=None)
    assert [one.bindings for one in now_serving] == [{"s0": 2}], "the newest goes on"
    cancelled = Candidate.objects.get(kernel=None)
    assert (cancelled.state, cancelled.reason) == ("rejected", "cancelled")


@pytest.mark.full
def test_series_count_the_points_that_no_ratio_is_taken_of(latest: str) -> None:
    counted = {track_factories.series(): values for values in ((0.0, -1.0, 2.0), (3.0,), ())}
    for series, values in counted.items():
        for value in values:
            track_factories.datum(series=series, value=value)
    migrate("0046_remeasuring_elsewhere")
    migrate(latest)
    for series, values in counted.items():
        series.refresh_from_db()
        assert series.not_positive == sum(value <= 0 for value in values)
