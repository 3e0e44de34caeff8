"""Alerts, points and thresholds for programs: read, triaged, annotated and set with a token."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Q
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import idempotency, tokens
from codegen_app.accounts.models import ApiRequest, AuditEntry
from codegen_app.tracking.alerting import triage as services
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    Annotation,
    Datum,
    EventKind,
    Relation,
    SeriesRule,
)
from codegen_app.tracking.queries import api_alerts
from codegen_app.tracking.services import point_notes
from scheduler.errors import UserError
from tests.support import alerts as made
from tests.support.queries import assert_steady, queries_of, statements_of

pytestmark = pytest.mark.django_db
TRIAGE = "alerts/triage"


@pytest.fixture
def ada() -> User:
    user = User.objects.create_user("ada")
    names = ("make_tokens", "triage")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def token(ada: User) -> str:
    return tokens.create_token(ada, "triage bot", ["read", "triage"], None)[1]


class Api:
    """Requests with a token; answers with their status."""

    def __init__(self, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, address: str, status: int = 200, **query: Any) -> Any:
        answer = Client().get(f"/api/v1/{address}", query, headers=self._headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    def post(
        self, address: str, body: Any, status: int = 200, key: str | None = None
    ) -> dict[str, Any]:
        headers = self._headers | ({"Idempotency-Key": key} if key is not None else {})
        answer = Client().post(
            f"/api/v1/{address}", json.dumps(body), content_type="application/json", headers=headers
        )
        assert answer.status_code == status, answer.content
        sent: dict[str, Any] = answer.json()
        return sent


@pytest.fixture
def api(token: str) -> Api:
    return Api(token)


def refused(answer: dict[str, Any], *words: str) -> None:
    assert all(word in answer["error"] for word in words), answer


def test_alerts_are_listed_newest_first_page_by_page(api: Api) -> None:
    rows = [made.alert() for _ in range(3)]
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = api.get("alerts", limit=2, after=after)
        seen += [row["id"] for row in page["alerts"]]
        after = page["next"]
    assert seen == [row.pk for row in reversed(rows)]


def test_an_alert_says_what_changed_most_and_whose_it_is(api: Api, ada: User) -> None:
    row = made.alert(assignee=ada)
    made.change(row, 100.0, 104.0)
    worst = made.change(row, 100.0, 130.0, cause="code", rule="same environment, other code")
    [listed] = api.get("alerts")["alerts"]
    assert api.get(f"alerts/{row.pk}") == listed
    assert (listed["kind"], listed["state"], listed["n_series"]) == ("regression", "new", 2)
    assert (listed["assignee"], listed["cause"], listed["series"]) == ("ada", "code", None)
    assert row.revision is not None
    assert listed["revision"]["name"] == row.revision.name
    largest = listed["largest_change"]
    assert (largest["ratio"], largest["n_before"], largest["n_after"]) == (1.3, 60, 12)
    assert largest["low"] < 1.3 < largest["high"]
    first, second = api.get(f"alerts/{row.pk}/changes")["changes"]
    assert (first["ratio"], second["ratio"]) == (1.04, 1.3)
    assert (second["id"], second["series"]) == (worst.pk, worst.series_id)
    assert (second["cause"], second["rule"]) == ("code", "same environment, other code")


def test_missing_data_names_its_series(api: Api) -> None:
    of = made.series()
    row = made.missing(of)
    answer = api.get(f"alerts/{row.pk}")
    assert (answer["series"], answer["revision"], answer["largest_change"]) == (of.pk, None, None)


def test_filters_are_those_of_the_page(api: Api, ada: User) -> None:
    old = made.alert(state=AlertState.FIXED)
    mine = made.alert(assignee=ada)
    gain = made.alert(AlertKind.IMPROVEMENT, duplicate_of=mine)
    Alert.objects.filter(pk=old.pk).update(changed_at=timezone.now() - timedelta(days=3))

    def found(**query: Any) -> list[int]:
        return [row["id"] for row in api.get("alerts", **query)["alerts"]]

    assert found() == [gain.pk, mine.pk], "open ones, linked ones too"
    assert found(state="fixed") == [old.pk]
    assert found(state="all") == [gain.pk, mine.pk, old.pk]
    assert found(kind="improvement") == [gain.pk]
    assert found(assignee="ada") == found(assignee="me") == [mine.pk]
    assert found(assignee="nobody") == [gain.pk]
    assert found(q=f"#{mine.pk}") == [mine.pk]
    since = (timezone.now() - timedelta(days=1)).isoformat()
    assert found(state="all", changed_since=since) == [gain.pk, mine.pk]


def test_a_parameter_that_is_no_filter_is_refused_by_name(api: Api) -> None:
    made.alert()
    refused(api.get("alerts", 422, stat="new"), "stat")
    refused(api.get("alerts", 422, state="closed"), "state", "open", "fixed")
    refused(api.get("alerts", 422, kind="slow"), "kind")
    refused(api.get("alerts", 422, changed_since="yesterday"), "changed_since", "ISO 8601")
    refused(api.get("alerts", 422, limit=0), "limit")
    refused(api.get("alerts/1234567", 404), "1234567")
    refused(api.get(f"alerts/{2**70}", 404), "does not exist")


def test_lists_need_as_many_queries_for_many_rows(ada: User) -> None:
    def counts() -> list[int]:
        return [
            queries_of(api_alerts.alerts_page, Q(), None, 0, 100),
            queries_of(api_alerts.changes_page, row.pk, 0, 100),
            queries_of(api_alerts.events_page, row.pk, 0, 100),
        ]

    row = made.alert(assignee=ada)
    made.change(row)
    few = counts()
    for _ in range(4):
        made.change(made.alert(assignee=ada))
        made.change(row)
        services.add_note([row.pk], "seen", ada)
    assert_steady(few, counts(), [2, 1, 1])


def test_one_request_sets_state_assignee_and_note(api: Api, ada: User) -> None:
    rows = [made.alert(), made.alert()]
    keys = [row.pk for row in rows]
    body = {"alerts": keys, "state": "investigating", "assignee": "ada", "note": "mine"}
    answer = api.post(TRIAGE, body)
    assert answer["changed"] == keys
    for row in rows:
        row.refresh_from_db()
        assert (row.state, row.assignee) == (AlertState.INVESTIGATING, ada)
        events = api.get(f"alerts/{row.pk}/events")["events"]
        assert [(one["kind"], one["by"], one["note"]) for one in events] == [
            ("state", "ada", "mine"),
            ("assignee", "ada", ""),
        ]
    [entry] = AuditEntry.objects.filter(action="triage with a token")
    assert (entry.actor_name, "triage bot" in entry.what) == ("ada", True)
    assert "investigating" in entry.why
    api.post(TRIAGE, {"alerts": keys, "assignee": ""})
    assert not Alert.objects.exclude(assignee=None).exists()


def test_a_note_is_kept_where_the_state_stays(api: Api) -> None:
    fixed, new = made.alert(state=AlertState.FIXED), made.alert()
    api.post(TRIAGE, {"alerts": [fixed.pk, new.pk], "state": "fixed", "note": "reverted"})
    assert [one.note for one in AlertEvent.objects.order_by("alert")] == ["reverted", "reverted"]
    assert AlertEvent.objects.get(alert=fixed).kind == EventKind.NOTE


def test_links_are_set_and_removed(api: Api) -> None:
    one, two = made.alert(), made.alert()
    api.post(TRIAGE, {"alerts": [two.pk], "duplicate_of": one.pk})
    assert api.get(f"alerts/{two.pk}")["duplicate_of"] == one.pk
    refused(api.post(TRIAGE, {"alerts": [one.pk], "downstream_of": two.pk}, 422), "itself linked")
    api.post(TRIAGE, {"alerts": [two.pk], "unlink": True})
    assert api.get(f"alerts/{two.pk}")["duplicate_of"] is None
    both = {"alerts": [two.pk], "unlink": True, Relation.DUPLICATE.value: one.pk}
    refused(api.post(TRIAGE, both, 422), "unlink")


def test_a_request_locks_in_the_order_of_all_others(api: Api) -> None:
    """Links before alerts, and alerts by number: else two requests could wait for each other."""
    first, second = made.alert(), made.alert()
    body = {"alerts": [second.pk], "state": "acknowledged", "duplicate_of": first.pk}
    locks = [
        line
        for line in statements_of(api.post, TRIAGE, body)
        if "pg_advisory_xact_lock" in line or ("FOR UPDATE" in line and "codegen_app_alert" in line)
    ]
    assert "pg_advisory_xact_lock" in locks[0]
    assert f"IN ({first.pk}, {second.pk})" in locks[1]


def test_what_is_wrong_with_a_triage_is_said_and_nothing_is_done(api: Api) -> None:
    row = made.alert()
    for body, words in (
        ({"alerts": [row.pk]}, ("expected state",)),
        ({"alerts": [], "state": "fixed"}, ("alerts",)),
        ({"alerts": [row.pk], "state": "done"}, ("state",)),
        ({"alerts": [row.pk], "stat": "fixed"}, ("stat",)),
        ({"alerts": [row.pk], "state": "fixed", "assignee": "eve"}, ("assignee", "eve")),
        ({"alerts": [row.pk], "note": " "}, ("note",)),
        ({"alerts": [row.pk], "note": "a\0b"}, ("note", "NUL")),
        ({"alerts": [row.pk, 10**9], "state": "fixed"}, ("1000000000", "does not exist")),
        ({"alerts": [2**80], "state": "fixed"}, ("alerts",)),
    ):
        refused(api.post(TRIAGE, body, 422), *words)
    row.refresh_from_db()
    assert row.state == AlertState.NEW
    assert not AlertEvent.objects.exists()
    assert not AuditEntry.objects.filter(action="triage with a token").exists()


def test_a_repeated_request_with_its_key_changes_nothing(api: Api) -> None:
    row = made.alert()
    body = {"alerts": [row.pk], "note": "seen in CI"}
    first = api.post(TRIAGE, body, key="run 7")
    assert api.post(TRIAGE, body, key="run 7") == first
    assert AlertEvent.objects.count() == 1
    other = {"alerts": [row.pk], "note": "another"}
    refused(api.post(TRIAGE, other, 409, key="run 7"), "Idempotency-Key", "another request")
    refused(api.post(TRIAGE, other, 400, key=" "), "Idempotency-Key")
    api.post(TRIAGE, body)
    assert AlertEvent.objects.count() == 2, "without a key, it is another note"


def test_a_refused_request_leaves_its_key_free(api: Api) -> None:
    row = made.alert()
    api.post(TRIAGE, {"alerts": [row.pk], "assignee": "eve"}, 422, key="k")
    assert not ApiRequest.objects.exists()
    api.post(TRIAGE, {"alerts": [row.pk], "state": "fixed"}, key="k")


def test_keys_are_forgotten_after_their_time(api: Api) -> None:
    row = made.alert()
    for key in ("old", "new"):
        api.post(TRIAGE, {"alerts": [row.pk], "note": key}, key=key)
    past = timezone.now() - idempotency.KEPT - timedelta(minutes=1)
    ApiRequest.objects.filter(key="old").update(created_at=past)
    assert idempotency.delete_old() == 1
    assert [kept.key for kept in ApiRequest.objects.all()] == ["new"]


def test_triage_needs_the_scope_and_its_owners_permission(api: Api, ada: User) -> None:
    row = made.alert()
    body = {"alerts": [row.pk], "state": "fixed"}
    reading = Api(tokens.create_token(ada, "reads", ["read", "ingest"], None)[1])
    refused(reading.post(TRIAGE, body, 403), "triage")
    ada.user_permissions.remove(Permission.objects.get(codename="triage"))
    refused(api.post(TRIAGE, body, 403), "Can triage alerts")
    assert api.get(f"alerts/{row.pk}")["state"] == "new"
    with pytest.raises(UserError, match="scopes: “triage” needs"):
        tokens.create_token(User.objects.get(pk=ada.pk), "another", ["triage"], None)


def test_a_point_is_annotated_once_and_its_note_is_on_the_chart(
    api: Api, ada: User, reader: Client
) -> None:
    series = made.series([100.0, 101.0, 99.0])
    datum = Datum.objects.filter(series=series).order_by("at")[1]
    address = f"series/{series.pk}/data/{datum.pk}/annotate"
    note = api.post(address, {"text": "driver <580> & fan"}, key="k")
    assert api.post(address, {"text": "driver <580> & fan"}, key="k") == note
    assert (note["by"], note["datum"]) == ("ada", datum.pk)
    assert api.get(f"series/{series.pk}/annotations")["annotations"] == [note]
    [mark] = reader.get(f"/series/{series.pk}/points.json").json()["series"][0]["notes"]
    assert (mark["text"], mark["alert"]) == ("driver <580> & fan", None)
    assert mark["at"] == int(datum.at.timestamp() * 1000)
    for page in (f"/series/{series.pk}", f"/series/{series.pk}/points/{datum.pk}"):
        assert "driver &lt;580&gt; &amp; fan" in reader.get(page).content.decode()
    assert AuditEntry.objects.get(action="annotate").why == "driver <580> & fan"

    removal = f"series/{series.pk}/annotations/{note['id']}/remove"
    assert api.post(removal, {}) == api.post(removal, {}) == note
    assert api.get(f"series/{series.pk}/annotations")["annotations"] == []
    assert Annotation.objects.get().removed_by == ada
    assert "driver &lt;" not in reader.get(f"/series/{series.pk}").content.decode()


def test_a_note_that_cannot_be_stored_is_refused(api: Api, ada: User) -> None:
    series = made.series([100.0])
    datum = Datum.objects.get(series=series)
    address = f"series/{series.pk}/data/{datum.pk}/annotate"
    for text in ("", " ", "a\0b", "x" * 501):
        refused(api.post(address, {"text": text}, 422), "text")
    refused(api.post(f"series/{series.pk + 1}/data/{datum.pk}/annotate", {"text": "x"}, 404), "no")
    refused(api.post(f"series/{series.pk}/annotations/9/remove", {}, 404), "no annotation 9")
    note = {"datum": datum, "series": series, "text": "x"}
    Annotation.objects.bulk_create([Annotation(**note) for _ in range(point_notes.MAX_ANNOTATIONS)])
    refused(api.post(address, {"text": "x"}, 422), "remove one first")


def test_thresholds_are_read_set_and_reset(api: Api) -> None:
    series = made.series([100.0])
    address = f"series/{series.pk}/thresholds"
    default = api.get(address)
    assert (default["is_default"], default["muted"], default["least_effect"]) == (True, False, None)
    body = {"least_effect": 0.02, "muted": True, "stale_after": "P7D", "reason": "a noisy host"}
    row = api.post(address, body)
    assert row == api.get(address)
    assert (row["least_effect"], row["muted"], row["changed_by"]) == (0.02, True, "ada")
    assert (row["stale_after"], row["reason"]) == ("P7DT00H00M00S", "a noisy host")
    assert SeriesRule.objects.get().stale_after == timedelta(days=7)
    for bad in ({"least_effect": 2}, {"stale_after": "P20Y"}, {"muted": "x"}, {"reason": ""}):
        refused(api.post(address, body | bad, 422), next(iter(bad)))
    refused(api.post(address, {"muted": True}, 422), "reason")
    for _ in range(2):
        assert api.post(f"{address}/reset", {"reason": "it is quiet"})["is_default"]
    assert not SeriesRule.objects.exists()
    actions = AuditEntry.objects.filter(action__endswith="thresholds").values_list("action")
    assert sorted(action for (action,) in actions) == ["reset thresholds", "set thresholds"]


def test_an_action_on_the_page_and_one_with_a_token_are_undone_alike(api: Api, ada: User) -> None:
    row = made.alert()
    api.post(TRIAGE, {"alerts": [row.pk], "state": "fixed"})
    act = AlertEvent.objects.get().act
    assert act is not None
    services.undo(act, ada)
    row.refresh_from_db()
    assert row.state == AlertState.NEW


def test_the_description_says_scopes_and_fields(reader: Client) -> None:
    operations = {
        f"{one['method']} {one['path']}": one
        for one in reader.get("/api/v1/docs.json").json()["operations"]
    }
    assert operations["POST /api/v1/alerts/triage"]["scope"] == "triage"
    assert operations["GET /api/v1/alerts"]["scope"] == "read"
    assert operations["POST /api/v1/worker/hello"]["scope"] == "worker"
    withdraw = operations["POST /api/v1/series/{pk}/data/{datum}/withdraw"]
    assert withdraw["scope"] == "ingest or triage"
    fields = {row["name"]: row for row in operations["POST /api/v1/alerts/triage"]["parameters"]}
    assert fields["alerts"]["required"] and fields["alerts"]["place"] == "body"
    assert "acknowledged" in fields["state"]["kind"]
    assert not fields["Idempotency-Key"]["required"]
    schema = reader.get("/api/v1/openapi.json").json()
    assert {"TokenAuth": ["triage"]} in schema["paths"]["/api/v1/alerts/triage"]["post"]["security"]
    examples = schema["components"]["schemas"]["Triage"]["examples"]
    assert {tuple(sorted(one)) for one in examples} >= {("alerts", "assignee")}
