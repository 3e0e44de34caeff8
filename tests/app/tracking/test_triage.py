"""What people say of alerts: whole, once, seen by all, and taken back as long as nobody went on."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User

from codegen_app.tracking.alerting import triage
from codegen_app.tracking.models import Alert, AlertEvent, AlertState, EventKind, Relation
from scheduler.errors import UserError
from tests.support.alerts import alert, missing

pytestmark = pytest.mark.django_db


def person(name: str, *, may: bool = True) -> User:
    user = User.objects.create_user(name)
    if may:
        user.user_permissions.add(Permission.objects.get(codename="triage"))
    return user


def test_several_alerts_are_given_a_state_and_it_is_taken_back_at_once() -> None:
    ada, rows = person("ada"), [alert() for _ in range(3)]
    keys = [row.pk for row in rows]
    triage.set_state(keys[:1], AlertState.ACKNOWLEDGED, ada)
    act = triage.set_state(keys, AlertState.EXPECTED, ada, "the new default is slower")
    assert act.line == "3 alerts: set to expected."
    assert set(Alert.objects.values_list("state", flat=True)) == {"expected"}
    event = AlertEvent.objects.filter(alert=keys[0]).last()
    assert event is not None
    assert (event.before, event.after) == ({"state": "acknowledged"}, {"state": "expected"})
    assert (event.note, event.by) == ("the new default is slower", ada)

    assert act.key is not None
    triage.undo(act.key, ada)
    assert list(Alert.objects.order_by("pk").values_list("state", flat=True)) == [
        *("acknowledged", "new", "new")
    ]
    undone = AlertEvent.objects.filter(alert=keys[0]).last()
    assert undone is not None
    assert (undone.kind, undone.undoes) == (EventKind.UNDO, event)
    assert (undone.before, undone.after) == (event.after, event.before)
    with pytest.raises(UserError, match="already undone"):
        triage.undo(act.key, ada)


def test_what_somebody_changed_since_is_not_taken_back_and_neither_is_the_rest() -> None:
    ada, bob, rows = person("ada"), person("bob"), [alert(), alert()]
    act = triage.set_state([row.pk for row in rows], AlertState.INVESTIGATING, ada)
    later = triage.set_state([rows[1].pk], AlertState.FIXED, bob)
    triage.assign([rows[0].pk], bob, bob)  # of another column: no hindrance
    assert act.key is not None
    assert later.key is not None
    with pytest.raises(UserError) as refused:
        triage.undo(act.key, ada)
    assert f"alert {rows[1].pk} was changed by bob" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [Alert.objects.get(pk=row.pk).state for row in rows] == ["investigating", "fixed"]
    triage.undo(later.key, ada)
    triage.undo(act.key, ada)
    assert set(Alert.objects.values_list("state", flat=True)) == {"new"}


def test_what_was_changed_away_and_back_again_was_changed() -> None:
    ada, bob, row = person("ada"), person("bob"), alert()
    act = triage.set_state([row.pk], AlertState.ACKNOWLEDGED, ada)
    for state in (AlertState.FIXED, AlertState.ACKNOWLEDGED):
        triage.set_state([row.pk], state, bob)
    assert act.key is not None
    with pytest.raises(UserError, match="by bob"):
        triage.undo(act.key, ada)


def test_nothing_is_done_twice_and_nothing_by_halves() -> None:
    ada, row = person("ada"), alert()
    triage.set_state([row.pk], AlertState.FIXED, ada)
    again = triage.set_state([row.pk], AlertState.FIXED, ada)
    assert (again.key, again.line) == (None, f"alert {row.pk}: set to fixed (no change).")
    with pytest.raises(UserError, match="does not exist"):
        triage.set_state([row.pk, 10**9], AlertState.NEW, ada)
    assert AlertEvent.objects.filter(kind=EventKind.STATE).count() == 1
    with pytest.raises(UserError, match="no alert is selected"):
        triage.set_state([], AlertState.NEW, ada)
    with pytest.raises(UserError, match="the limit of 500"):
        triage.set_state(range(1, 600), AlertState.NEW, ada)


def test_alerts_are_assigned_to_who_may_triage_and_noted() -> None:
    ada, row = person("ada"), alert()
    with pytest.raises(UserError, match="eve has no permission to triage"):
        triage.assign([row.pk], person("eve", may=False), ada)
    act = triage.assign([row.pk], ada, ada)
    assert Alert.objects.get().assignee == ada
    note = triage.add_note([row.pk], "  seen on one host alone ", ada)
    assert AlertEvent.objects.get(kind=EventKind.NOTE).note == "seen on one host alone"
    assert act.key is not None
    assert note.key is not None
    triage.undo(act.key, ada)
    triage.undo(note.key, ada)
    assert Alert.objects.get().assignee is None
    for text in ("  ", "x" * 2001):
        with pytest.raises(UserError, match="note: "):
            triage.add_note([row.pk], text, ada)


def test_links_make_no_circle_and_one_replaces_another() -> None:
    ada = person("ada")
    one, two, three = (alert().pk for _ in range(3))
    triage.link([two], one, Relation.DUPLICATE, ada)
    act = triage.link([three], two, Relation.DOWNSTREAM, ada)
    for other in (two, three):
        with pytest.raises(UserError, match=f"alert {other} is itself linked to alert {one}"):
            triage.link([one], other, Relation.DUPLICATE, ada)
    with pytest.raises(UserError, match="cannot be linked to itself"):
        triage.link([one], one, Relation.DUPLICATE, ada)
    triage.link([three], one, Relation.DUPLICATE, ada)
    row = Alert.objects.get(pk=three)
    assert (row.duplicate_of_id, row.downstream_of_id) == (one, None)
    assert act.key is not None
    with pytest.raises(UserError, match="was changed"):
        triage.undo(act.key, ada)
    triage.unlink([three, two], ada)
    assert not Alert.objects.exclude(duplicate_of=None, downstream_of=None).exists()


def test_a_link_is_not_taken_back_into_a_circle() -> None:
    ada = person("ada")
    one, two = alert().pk, alert().pk
    triage.link([two], one, Relation.DUPLICATE, ada)
    gone = triage.unlink([two], ada)
    triage.link([one], two, Relation.DUPLICATE, ada)
    assert gone.key is not None
    with pytest.raises(UserError, match=f"alert {one} is itself linked to alert {two}"):
        triage.undo(gone.key, ada)


def test_missing_data_of_a_series_is_open_once() -> None:
    ada, old = person("ada"), missing()
    triage.set_state([old.pk], AlertState.FIXED, ada)
    missing(old.series)
    with pytest.raises(UserError, match="already has an open alert"):
        triage.set_state([old.pk], AlertState.NEW, ada)
    assert Alert.objects.get(pk=old.pk).state == "fixed"
