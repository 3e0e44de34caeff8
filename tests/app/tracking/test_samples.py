"""Raw samples roll up by an active policy alone; all else of a point stays, whatever happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.platform.models import Round
from codegen_app.site import periodic
from codegen_app.tracking.models import Change, Channel, Datum, Delivery, RetentionPolicy, Source
from codegen_app.tracking.services import rollup
from tests.app import track_factories
from tests.app.processes import ROOT, worker_environment
from tests.support.catalogue import Index, indexes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_policy(db: None) -> None:
    """Without the one that a new site has."""
    RetentionPolicy.objects.all().delete()


SAMPLES = [1.0, 2.0, 3.0]
DIES_AFTER_ITS_UPDATE = """
import os, signal
import django
django.setup()
from codegen_app.tracking.services import rollup
roll_up = rollup._roll_up
def dies(*arguments):
    assert roll_up(*arguments) == 5
    os.kill(os.getpid(), signal.SIGKILL)
rollup._roll_up = dies
rollup.roll_up_due()
"""


def point(days: int, **fields: object) -> Datum:
    """A point with samples, measured so many days ago."""
    when = timezone.now() - timedelta(days=days)
    return track_factories.datum(
        **{"at": when, "value": 2.0, "low": 1.0, "high": 3.0, "n": 3, "samples": SAMPLES} | fields
    )


def policy(**fields: object) -> RetentionPolicy:
    return RetentionPolicy.objects.create(**{"name": "old", "days": 30, "active": True} | fields)


def kept() -> set[int]:
    return set(Datum.objects.exclude(samples=None).values_list("pk", flat=True))


def test_nothing_goes_without_an_active_policy() -> None:
    old = point(10_000)
    assert rollup.roll_up_due() == 0
    policy(active=False)
    assert rollup.roll_up_due() == 0
    assert kept() == {old.pk}


def test_samples_go_with_age_and_all_else_stays() -> None:
    old, young = point(31), point(29)
    change = track_factories.change(series=old.series)
    before = Datum.objects.values().get(pk=old.pk)
    row = policy()
    assert rollup.roll_up_due() == 1
    assert Datum.objects.values().get(pk=old.pk) == before | {"samples": None}
    assert Change.objects.values().get() == Change.objects.values().get(pk=change.pk)
    assert kept() == {young.pk}
    row.refresh_from_db()
    assert (row.last_rows, row.total_rows, row.begun_at) == (1, 1, None)
    assert row.last_at is not None


def test_a_policy_of_one_source_leaves_the_others() -> None:
    sent, own = point(40), point(40, source=Source.TUNING)
    policy(source=Source.TUNING)
    assert rollup.roll_up_due() == 1
    assert kept() == {sent.pk}
    assert own.pk not in kept()


def test_steps_are_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "STEP_ROWS", 2)
    made = [point(100 - n) for n in range(5)]
    row = policy()
    assert rollup.step(row.pk) == (2, False)
    assert kept() == {one.pk for one in made[2:]}
    row.refresh_from_db()
    assert (row.last_rows, row.last_at) == (2, None)
    assert row.begun_at is not None
    assert rollup.roll_up_due() == 3, "it goes on with the pass that was begun"
    row.refresh_from_db()
    assert (row.last_rows, row.total_rows, row.begun_at) == (5, 5, None)


def test_a_policy_that_is_switched_off_ends_at_its_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollup, "STEP_ROWS", 2)
    for n in range(5):
        point(50 + n)
    row = policy()
    rollup.step(row.pk)
    RetentionPolicy.objects.update(active=False)
    assert rollup.roll_up(row) == 0
    assert len(kept()) == 3


def test_what_arrives_late_with_an_old_date_is_found_by_the_next_pass() -> None:
    row = policy()
    point(60)
    assert rollup.roll_up_due() == 1
    late = point(90)
    assert rollup.roll_up_due() == 0, "a pass was just done"
    RetentionPolicy.objects.update(last_at=timezone.now() - rollup.PASS_INTERVAL)
    assert rollup.roll_up_due() == 1
    assert late.pk not in kept()
    row.refresh_from_db()
    assert (row.last_rows, row.total_rows) == (1, 2)


def test_the_round_does_it() -> None:
    point(60)
    policy()
    Round.objects.all().delete()
    periodic.run_due()
    assert kept() == set()


@pytest.mark.django_db(transaction=True)
def test_a_step_that_is_killed_leaves_nothing_half_done(tmp_path: Path) -> None:
    made = {point(60 + n).pk for n in range(5)}
    row = policy()
    killed = subprocess.run(
        [sys.executable, "-c", DIES_AFTER_ITS_UPDATE],
        cwd=ROOT,
        env=worker_environment(tmp_path, "memory://"),
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    row.refresh_from_db()
    assert (kept(), row.last_rows, row.begun_at) == (made, 0, None)
    assert rollup.roll_up_due() == 5
    row.refresh_from_db()
    assert (kept(), row.total_rows) == (set(), 5)


def test_a_step_finds_its_points_by_an_index_in_their_order() -> None:
    by_age = indexes(Datum._meta.db_table)["datum_samples_by_age"]
    with_samples = frozenset({"samples IS NOT NULL"})
    assert by_age == Index("btree", ("source", "measured_at"), where=with_samples)


@pytest.mark.long
def test_of_many_points_a_step_reads_and_sorts_no_more_than_it_writes() -> None:
    """What the planner takes, where there are enough for it to have no choice."""
    first, table = point(60).pk, Datum._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} SELECT made.* FROM {table} base, generate_series(1, 100000) step,"
            " LATERAL jsonb_populate_record(base, jsonb_build_object('id', base.id + step,"
            " 'measured_at', base.measured_at - step * interval '1 minute')) made"
            " WHERE base.id = %s",
            [first],
        )
        cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"EXPLAIN {rollup._ROLL_UP}", [Source.API, timezone.now(), 10])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "datum_samples_by_age" in plan, plan
    assert "Sort" not in plan, plan


def delivery(days: int, state: str) -> Delivery:
    """One that was over so many days ago, or has been waiting since."""
    when = timezone.now() - timedelta(days=days)
    over = {} if state == "pending" else {"ended_at": when}
    to = Channel.objects.first() or track_factories.channel()
    made = {"channel": to, "key": uuid4(), "state": state, "next_at": when, **over}
    return Delivery.objects.create(**made)


def test_deliveries_go_by_a_policy_of_their_own_and_what_is_to_be_sent_never_does() -> None:
    left = {delivery(29, "delivered").pk, delivery(400, "pending").pk}
    old = {delivery(31, "delivered").pk, delivery(400, "failed").pk}
    sampled = point(400)
    policy(active=False, what="deliveries")
    rollup.roll_up_due()
    assert Delivery.objects.count() == 4
    assert "old: 2 deliveries would be deleted (it is not active)" in run("--dry-run")
    RetentionPolicy.objects.update(active=True)
    assert rollup.roll_up_due() == len(old)
    assert set(Delivery.objects.values_list("pk", flat=True)) == left
    assert kept() == {sampled.pk}
    assert RetentionPolicy.objects.get().total_rows == 2
    with pytest.raises(IntegrityError), transaction.atomic():
        policy(name="of tokens", what="deliveries", source="api")


def test_a_policy_of_samples_leaves_deliveries() -> None:
    delivery(400, "delivered")
    policy()
    assert rollup.roll_up_due() == 0
    assert Delivery.objects.count() == 1


def run(*options: str) -> str:
    output = StringIO()
    call_command("roll_up", *options, stdout=output)
    return output.getvalue()


def test_the_command_counts_first_and_rolls_up_when_told() -> None:
    assert "there is no policy" in run()
    point(60)
    policy()
    policy(name="someday", days=50, active=False)
    counted = run("--dry-run")
    assert "old: 1 points would be deleted\n" in counted
    assert "someday: 1 points would be deleted (it is not active)" in counted
    assert len(kept()) == 1
    assert "someday: not active" in run("--policy", "someday")
    assert len(kept()) == 1
    assert "old: 1 points deleted" in run("--policy", "old")
    assert kept() == set()
    with pytest.raises(CommandError, match="no such policy"):
        run("--policy", "older")


def test_the_admin_says_what_would_go_and_notes_who_lets_it(client: Client) -> None:
    point(60)
    client.force_login(User.objects.create_superuser("root"))
    given = {"name": "old", "what": "samples", "source": "", "days": "30"}
    assert client.post("/admin/codegen_app/retentionpolicy/add/", given).status_code == 302
    row = RetentionPolicy.objects.get()
    assert (row.active, row.created_by.username) == (False, "root")
    address = f"/admin/codegen_app/retentionpolicy/{row.pk}/change/"
    assert "1 points" in client.get(address).content.decode()
    assert client.post(address, given | {"active": "on"}).status_code == 302
    noted = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(noted)[-2:] == ["keep", "let go with age"]
    assert len(kept()) == 1, "the next round does it"


def test_days_that_no_date_has_are_turned_down(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    for days in ("0", "36501"):
        given = {"name": "old", "what": "samples", "source": "", "days": days, "active": "on"}
        assert client.post("/admin/codegen_app/retentionpolicy/add/", given).status_code == 200
    assert not RetentionPolicy.objects.exists()
