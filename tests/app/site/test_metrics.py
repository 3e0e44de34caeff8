"""/metrics: who may read it, and that its figures are those of the rows."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from codegen_app.kernels.models import Build
from codegen_app.platform import readiness
from codegen_app.platform.config import env
from codegen_app.site import metrics
from codegen_app.tracking.models import Delivery, DeliveryState, Series
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import Worker
from tests.app import factories, track_factories
from tests.support.probes import wait_for_probes
from tests.support.queries import assert_steady, queries_of

TOKEN = "a-token-of-the-tests-with-0123456789"
GIVEN = {"Authorization": f"Bearer {TOKEN}", "Host": "10.1.2.3:8000"}


@pytest.fixture(autouse=True)
def _on(settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.SECURE_SSL_REDIRECT = True
    monkeypatch.setattr(metrics, "LIMIT_MS", 600_000)  # no part is left out of a busy machine's
    wait_for_probes(monkeypatch)


def figures() -> dict[tuple[str, str], float]:
    """Each sample by its name and label's value, as Prometheus's own parser reads them."""
    answer = Client().get("/metrics", headers=GIVEN)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_without_token_and_networks_there_is_no_such_address(settings: object) -> None:
    settings.METRICS_TOKEN = ""
    settings.SECURE_SSL_REDIRECT = False
    assert Client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "address", "status"),
    [
        (f"Bearer {TOKEN}", "192.0.2.1", 200),
        (f"bearer {TOKEN}", "192.0.2.1", 200),
        ("", "10.20.3.4", 200),
        ("", "fd12::1", 200),
        ("", "192.0.2.1", 401),
        ("", "", 401),
        (f"Bearer {TOKEN}x", "192.0.2.1", 401),
        (f"Basic {TOKEN}", "192.0.2.1", 401),
        ("Bearer ü", "192.0.2.1", 401),
    ],
)
def test_who_may_read(header: str, address: str, status: int, settings: object) -> None:
    settings.METRICS_NETWORKS = [ip_network("10.20.0.0/16"), ip_network("fd12::/16")]
    given = {"Authorization": header} if header else {}
    answer = Client().get("/metrics", headers=given, REMOTE_ADDR=address)
    assert answer.status_code == status
    assert ("kiln_" in answer.text) == (status == 200)
    assert not answer.cookies
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


@pytest.mark.django_db
def test_an_empty_token_opens_nothing(settings: object) -> None:
    settings.METRICS_TOKEN, settings.METRICS_NETWORKS = "", [ip_network("10.20.0.0/16")]
    answer = Client().get("/metrics", headers={"Authorization": "Bearer "})
    assert answer.status_code == 401


def test_it_is_read_alone() -> None:
    assert Client().post("/metrics", headers=GIVEN).status_code == 405


def test_a_weak_token_stops_the_start() -> None:
    for weak in ("short", "x" * 23, "twenty-four characters and spaces"):
        with pytest.raises(ImproperlyConfigured, match="KILN_METRICS_TOKEN is weak"):
            env.token("KILN_METRICS_TOKEN", least=24, environ={"KILN_METRICS_TOKEN": weak})
    assert env.token("KILN_METRICS_TOKEN", least=24, environ={"KILN_METRICS_TOKEN": TOKEN}) == TOKEN


@pytest.mark.django_db
def test_figures_are_those_of_the_rows() -> None:
    now = timezone.now()
    factories.graph()
    build = factories.build(state="queued")
    Build.objects.filter(pk=build.pk).update(created_at=now - timedelta(hours=2))
    factories.done_build()
    task = factories.task()
    for name, seen, queues in (
        ("alive@a", now, ["compile", "prepare"]),
        ("also@a", now, ["compile"]),
        ("silent@a", now - timedelta(hours=1), ["compile"]),
    ):
        Worker.objects.create(
            name=name, host="a", pid=1, queues=queues, started_at=now, seen_at=seen
        )
    track_factories.regression("gemm")
    failed = track_factories.channel()
    Delivery.objects.create(
        channel=failed, key="12345678-1234-5678-1234-567812345678", next_at=now,
        state=DeliveryState.FAILED, ended_at=now, error="404",
    )  # fmt: skip
    found = figures()
    builds, runs = Build.objects, TuningRun.objects
    for state in ("queued", "running", "done"):
        assert found["kiln_builds", state] == builds.filter(state=state).count(), state
        assert found["kiln_runs", state] == runs.filter(state=state).count(), state
    assert found["kiln_builds", "queued"] >= 1
    assert found["kiln_builds", "done"] >= 1
    assert found["kiln_queue_waiting", "compile"] == builds.filter(state="queued").count()
    assert 7200 <= found["kiln_queue_oldest_age_seconds", "compile"] < 7500
    assert found["kiln_queue_waiting", "prepare"] >= 1
    assert found["kiln_queue_waiting", f"measure.{task.run.target}"] >= 1
    assert (
        found["kiln_queue_waiting", "detect"] == Series.objects.exclude(unchecked_from=None).count()
    )
    assert found["kiln_queue_waiting", "notify"] == 0
    assert found["kiln_queue_oldest_age_seconds", "notify"] == 0
    assert found["kiln_workers_alive", "compile"] == 2
    assert found["kiln_workers_alive", "prepare"] == 1
    assert found["kiln_alerts_open", "new"] == 1
    assert found["kiln_deliveries", "failed"] == 1
    assert found["kiln_deliveries", "pending"] == 0
    assert {part for name, part in found if name == "kiln_metrics_part_ok"} == set(metrics.PARTS)
    assert all(found["kiln_metrics_part_ok", part] == 1 for part in metrics.PARTS)


@pytest.mark.django_db
def test_recent_points_are_counted_by_source() -> None:
    track_factories.datum(source="api", measured_at=timezone.now())
    track_factories.datum(source="api", measured_at=timezone.now() - timedelta(hours=3))
    found = figures()
    assert found["kiln_points_recent", "api"] == 1
    assert found["kiln_points_recent", "tuning"] == 0


@pytest.mark.django_db
def test_what_takes_too_long_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's own limit ends the statement; the others are there."""
    limits: list[str] = []

    def slow() -> metrics.Families:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            limits.append(cursor.fetchone()[0])
            cursor.execute("SET LOCAL statement_timeout = 1")  # which is over at once
            cursor.execute("SELECT pg_sleep(600)")
        return ()

    monkeypatch.setitem(metrics.PARTS, "builds", slow)
    monkeypatch.setattr(
        metrics, "PARTS", {name: metrics.PARTS[name] for name in ("builds", "runs")}
    )
    found = figures()
    assert limits == ["10min"]
    assert found["kiln_metrics_part_ok", "builds"] == 0
    assert found["kiln_metrics_part_ok", "runs"] == 1
    assert ("kiln_builds", "done") not in found
    assert found["kiln_runs", "done"] == 0


@pytest.mark.django_db
def test_it_costs_the_same_queries_for_many_rows() -> None:
    counts = []
    for more in (1, 5):
        for _ in range(more):
            factories.task()
            factories.graph()
        counts.append([queries_of(metrics.exposition)])
    assert_steady(*counts, usual=[42])


def test_a_database_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_S", 0.0)
    for name, value in {"HOST": "127.0.0.1", "PORT": 1}.items():  # nobody listens there
        monkeypatch.setitem(settings.DATABASES["default"], name, value)
    answer = Client().get("/metrics", headers=GIVEN)
    assert (answer.status_code, answer.text) == (503, "The database does not answer.\n")
