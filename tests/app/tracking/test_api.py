"""The programs' way in, as its users rely on it: whole or nothing, once, within limits, in JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from waitress.adjustments import Adjustments

from codegen_app.accounts import token_text as texts
from codegen_app.accounts import tokens
from codegen_app.accounts.models import ApiToken, AuditEntry
from codegen_app.tracking.models import Batch, Conditions, Datum, Revision, Series
from codegen_app.tracking.services import point_storage
from codegen_app.web.server import bodies
from codegen_app.web.server.connections import Parser
from scheduler.clients import kiln_client
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
RESULTS = "/api/v1/results"
STORED = (Series, Datum, Revision, Conditions, Batch)


@pytest.fixture
def owner() -> User:
    user = User.objects.create_user("ci")
    user.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    return user


@pytest.fixture
def token(owner: User) -> str:
    return tokens.create_token(owner, "CI", ["ingest", "read"], None)[1]


def document(*points: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    fields = {"device": "NVIDIA H200", "metric": "time", "unit": "ns", "revision": "abc"}
    return {
        "kind": "kiln points",
        "schema": 1,
        "defaults": fields | defaults,
        "points": list(points or [{"problem": "mm", "value": 1.5}]),
    }


def send(
    client: Client, token: str, body: Any = None, key: str = "k1", address: str = RESULTS
) -> Any:
    data = body if isinstance(body, bytes | str) else json.dumps(body or document())
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    return client.post(address, data, content_type="application/json", headers=headers)


def get(client: Client, token: str, address: str) -> Any:
    return client.get(f"/api/v1/{address}", headers={"Authorization": f"Bearer {token}"})


def counts() -> list[int]:
    return [model.objects.count() for model in STORED]


def test_what_is_sent_is_a_series_with_its_points(client: Client, token: str) -> None:
    body = document(
        {
            "problem": "mm 64",
            "sizes": {"M": 64},
            "value": 2.0,
            "low": 1.5,
            "high": 2.5,
            "samples": [1.5, 2.0, 2.5],
            "measured_at": "2026-11-20T10:00:00Z",
            "conditions": {"driver": "580.95", "config": {"BLOCK_M": 64}},
        },
        {"problem": "mm 64", "sizes": {"M": 64}, "value": 3.0, "measured_at": "2026-11-21T10:00"},
        {"problem": "copy", "metric": "bandwidth", "unit": "GB/s", "value": 4000},
        target="sm_90",
        toolchain="nvcc",
    )
    answer = send(client, token, body)
    assert answer.status_code == 200, answer.content
    batch = Batch.objects.get().pk
    stored = {"batch": batch, "points": 3, "series": 2, "new_series": 2, "not_positive": 0}
    assert answer.json() == stored | {"branch_points": 0, "notes": [], "left_out": []}

    rows = get(client, token, "series?problem=mm 64").json()
    (row,) = rows["series"]
    assert rows["next"] is None
    assert (row["sizes"], row["better"], row["points"]) == ({"M": 64}, "lower", 2)
    assert row["first_at"] == "2026-11-20T10:00:00Z"
    assert row["last_at"] == "2026-11-21T10:00:00Z"
    assert get(client, token, f"series/{row['id']}").json() == row
    assert Series.objects.get(problem="copy").better == "higher"

    first, second = get(client, token, f"series/{row['id']}/data?samples=true").json()["data"]
    assert (first["value"], first["low"], first["high"], first["n"]) == (2.0, 1.5, 2.5, 3)
    assert first["samples"] == [1.5, 2.0, 2.5]
    assert first["conditions"] == {"driver": "580.95", "config": {"BLOCK_M": 64}}
    assert (second["n"], second["low"], second["samples"]) == (1, None, None)
    assert {one["revision"] for one in (first, second)} == {"abc"}


def test_a_history_is_read_page_by_page(client: Client, token: str) -> None:
    """Points of one moment too; a point that is added meanwhile moves no other."""
    points = [
        {"problem": "mm", "value": n, "measured_at": f"2026-11-{n // 2 + 1:02}"} for n in range(10)
    ]
    send(client, token, document(*points))
    key = Series.objects.get().pk
    seen, after = [], ""
    while after is not None:
        page = get(client, token, f"series/{key}/data?limit=3&after={after}".replace("+", "%2B"))
        seen += [one["value"] for one in page.json()["data"]]
        after = page.json()["next"]
    assert seen == list(range(10))


def test_a_revision_that_is_measured_later_stands_where_it_belongs(
    client: Client, token: str
) -> None:
    old = {"name": "old", "at": "2026-11-01T00:00:00Z", "branch": "main"}
    new = {"name": "new", "at": "2026-11-02T00:00:00Z", "branch": "main"}
    now = "2026-11-20T00:00:00Z"
    send(client, token, document({"problem": "mm", "value": 2, "revision": new}, measured_at=now))
    row = Series.objects.get()
    Series.objects.update(unchecked_from=None)
    backfilled = document({"problem": "mm", "value": 1, "revision": old}, measured_at=now)
    send(client, token, backfilled, "k2")
    values = row.data.order_by("at").values_list("value", flat=True)
    assert list(values) == [1, 2]
    row.refresh_from_db()
    assert row.unchecked_from == row.first_at == Revision.objects.get(name="old").at
    # Who does not know when it was made says nothing else.
    unknown = document({"problem": "mm", "value": 3, "revision": {"name": "old", "branch": "main"}})
    send(client, token, unknown, "k3")
    assert row.data.filter(at=row.first_at).count() == 2


def test_the_same_batch_is_stored_once_and_answered_the_same(client: Client, token: str) -> None:
    first = send(client, token)
    before = counts()
    again = send(client, token)
    assert (again.status_code, again.json()) == (200, first.json())
    other = send(client, token, document({"problem": "mm", "value": 2}))
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["error"]
    said_otherwise = send(client, token, address=f"{RESULTS}?device=other")
    assert said_otherwise.status_code == 409
    assert counts() == before
    assert send(client, token, key="k2").json()["new_series"] == 0
    assert Datum.objects.count() == 2


def test_a_key_is_of_one_token(client: Client, token: str, owner: User) -> None:
    other = tokens.create_token(owner, "another", ["ingest"], None)[1]
    send(client, token)
    assert send(client, other, document({"problem": "mm", "value": 2})).status_code == 200


def point(**fields: Any) -> dict[str, Any]:
    return {"problem": "mm", "value": 1.0} | fields


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({"value": "fast"}, "points[1].value: expected a number"),
        ({"value": True}, "points[1].value: expected a number"),
        ({"value": 10**400}, "points[1].value: must be finite"),
        ({"low": 2.0, "high": 3.0}, "points[1].low: must not be above the value"),
        ({"low": 0.5}, "points[1].low: low and high must be given together"),
        ({"samples": [1, None]}, "points[1].samples[1]: expected a number"),
        ({"n": 0}, "points[1].n: expected an integer from 1"),
        ({"problem": " "}, "points[1].problem: must not be empty"),
        ({"problem": "a\0b"}, "points[1].problem: must not contain NUL"),
        ({"problem": "\ud800"}, "points[1].problem: must not contain NUL"),
        ({"problem": "x" * 501}, "points[1].problem: more than 500"),
        ({"sizes": {"M": -1}}, "points[1].sizes.M: expected an integer from 0"),
        ({"measured_at": "yesterday"}, "points[1].measured_at: 'yesterday' is not a time"),
        ({"measured_at": "2199-12-31"}, "points[1].measured_at: 2199-12-31 00:00:00 UTC is in the"),
        ({"revision": {"name": "a", "at": "2199-12-31"}}, "points[1].revision.at: 2199-12-31"),
        ({"value": 1e200}, "points[1].value: expected 0 or a magnitude from 1e-150 to 1e+150"),
        ({"measured_at": "0001-01-01T00:00:00+23:00"}, "points[1].measured_at: "),
        ({"revision": {"at": "2026-01-01"}}, "points[1].revision.name: expected a string"),
        ({"conditions": {"colour": "red"}}, "points[1].conditions.colour: unknown field"),
        (
            {"conditions": {"config": {"a": [2**70]}}},
            "points[1].conditions.config: contains a number that is too large",
        ),
        ({"medain": 1}, "points[1].medain: unknown field"),
        ({"better": "more"}, 'points[1].better: expected "lower" or "higher"'),
    ],
)
def test_bad_input_is_refused_whole_with_row_and_field(
    bad: dict[str, Any], line: str, client: Client, token: str
) -> None:
    before = counts()
    answer = send(client, token, document(point(), point(**bad)))
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(line)
    assert counts() == before
    assert send(client, token).status_code == 200, "the key is free: nothing was stored with it"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "invalid JSON"),
        (b"\xff", "byte 0: not UTF-8 text"),
        (b"[" * 100_000, "invalid JSON"),
        (b"9" * 10_000, "invalid JSON"),
        (b"[]", "format: not recognized"),
        (b'{"kind": "kiln points", "schema": 2}', "schema: this version of Kiln supports only 1"),
        (json.dumps(document() | {"points": []}).encode(), "points: expected 1 to 10000"),
        (b'{"bench": {"latency": {"value": 1}}}', "device: missing in the file"),
    ],
)
def test_what_is_no_file_of_results_is_refused(
    body: bytes, line: str, client: Client, token: str
) -> None:
    answer = send(client, token, body)
    assert (answer.status_code, answer.json()["error"][: len(line)]) == (422, line)


@pytest.mark.parametrize("name", ["measured_at", "revision_at"])
def test_a_moment_in_the_future_beside_a_file_is_refused(
    name: str, client: Client, token: str
) -> None:
    later = timezone.now() + timedelta(minutes=6)
    stated = f"{RESULTS}?device=H200&revision=abc&{name}={later:%Y-%m-%dT%H:%M:%S}"
    answer = send(client, token, {"matmul": {"latency": {"value": 88.0}}}, address=stated)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"{name}: {later:%Y-%m-%d %H:%M:%S} UTC is in the")
    assert counts() == [0] * len(STORED)


def test_other_tools_files_are_taken_as_they_are(client: Client, token: str) -> None:
    body = {"matmul": {"latency": {"value": 88.0, "lower_value": 87.0, "upper_value": 89.0}}}
    answer = send(client, token, body, address=f"{RESULTS}?device=H200&revision=abc&format=bmf")
    assert answer.status_code == 200, answer.content
    assert Series.objects.get().metric == "time"


def test_a_wrong_row_is_named_in_the_answer_and_the_others_are_stored(
    client: Client, token: str
) -> None:
    good = {"name": "a", "fullname": "t.py::a", "stats": {"median": 1e-6}}
    wrong = {"name": "b", "fullname": "t.py::\0b", "stats": None}
    body = {"machine_info": {"cpu": {"brand": "EPYC"}}, "benchmarks": [good, wrong]}
    answer = send(client, token, body, address=f"{RESULTS}?revision=abc")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["points"], Series.objects.get().problem) == (1, "t.py::a")
    (left_out,) = answer.json()["left_out"]
    assert left_out["where"] == "benchmarks[1]"
    assert left_out["reason"].startswith(r"t.py::\x00b: fullname: must not contain NUL")


def test_parameters_that_there_are_not_are_refused(client: Client, token: str) -> None:
    for query, name in (
        ("devise=H200", "query.devise"),
        ("format=csv", "format"),
        ("revision_at=soon", "revision_at"),
        (f"branch={'x' * 201}", "branch"),
    ):
        answer = send(client, token, address=f"{RESULTS}?{query}")
        assert (answer.status_code, answer.json()["error"].startswith(name)) == (422, True), query
    for address in (
        "series?limit=0",
        "series?limit=x",
        "series?metrc=time",
        "series/1/data?after=x",
    ):
        assert get(client, token, address).status_code in (404, 422), address


def test_nothing_is_half_stored(
    client: Client, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        assert Datum.objects.exists()
        raise IntegrityError

    monkeypatch.setattr(point_storage.queue, "notify", fail)
    client.raise_request_exception = False
    assert send(client, token).status_code == 500
    assert counts() == [0] * len(STORED)
    monkeypatch.undo()
    assert send(client, token).status_code == 200


def test_queries_do_not_grow_with_the_points(client: Client, token: str) -> None:
    assert send(client, token).status_code == 200  # what is made once is there
    asked = []
    for key, many in (("a", 1), ("b", 500)):
        points = [{"problem": f"{key} {n % 50}", "value": n, "conditions": {}} for n in range(many)]
        asked.append([queries_of(send, client, token, document(*points), key)])
    # Savepoints, the token and its owner's rights included.
    assert_steady(*asked, usual=[20])
    assert Series.objects.filter(problem__startswith="b ").count() == 50


def test_who_has_no_valid_token_is_told_so_and_stores_nothing(
    client: Client, token: str, owner: User
) -> None:
    row = ApiToken.objects.get()
    read_only = tokens.create_token(owner, "reader", ["read"], None)[1]
    assert client.post(RESULTS, "{}", content_type="application/json").status_code == 401
    for wrong in ("", "kiln_x", token[:-1], token[:-1] + "!", texts.make_token(), token * 2):
        answer = send(client, wrong)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), wrong
    answer = send(client, read_only)
    assert (answer.status_code, "ingest" in answer.json()["error"]) == (403, True)
    tokens.revoke(row, owner)
    assert send(client, token).status_code == 401
    assert counts() == [0] * len(STORED)


def test_a_token_ends_with_its_time_its_owner_and_the_owners_right(
    client: Client, token: str, owner: User
) -> None:
    assert send(client, token).status_code == 200
    row = ApiToken.objects.all()
    row.update(created_at=timezone.now() - timedelta(days=2))
    row.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert send(client, token).status_code == 401
    row.update(expires_at=None)
    assert send(client, token).status_code == 200
    owner.user_permissions.clear()
    assert send(client, token).status_code == 401
    User.objects.update(is_superuser=True, is_active=False)
    assert send(client, token).status_code == 401


def test_only_a_keyed_hash_of_a_token_is_kept(token: str, owner: User, settings: Any) -> None:
    row = ApiToken.objects.get()
    assert token.startswith(row.prefix)
    kept = " ".join(str(value) for value in vars(row).values())
    assert token not in kept
    assert token[12:] not in kept
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "another" * 10
    assert tokens.find_token(token) is None
    settings.SECRET_KEY_FALLBACKS = [old]
    assert tokens.find_token(token) == row


def test_the_last_use_is_written_once_a_minute(client: Client, token: str) -> None:
    send(client, token)
    first = ApiToken.objects.get().used_at
    assert first is not None
    send(client, token)
    assert ApiToken.objects.get().used_at == first
    ApiToken.objects.update(used_at=first - timedelta(minutes=2))
    send(client, token)
    assert ApiToken.objects.get().used_at > first


def no_time_passes() -> None:
    """For tokens, until their next request: nothing grows again meanwhile."""
    ApiToken.objects.update(allowed_at=timezone.now() + timedelta(hours=1))


def test_each_token_has_its_rate_in_requests(
    client: Client, token: str, owner: User, settings: Any
) -> None:
    settings.API_REQUESTS_A_MINUTE = 3
    for _ in range(3):
        assert get(client, token, "series").status_code == 200
        no_time_passes()
    answer = get(client, token, "series")
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 20
    other = tokens.create_token(owner, "another", ["read"], None)[1]
    assert get(client, other, "series").status_code == 200
    ApiToken.objects.update(allowed_at=timezone.now() - timedelta(seconds=20))
    assert get(client, token, "series").status_code == 200
    no_time_passes()
    assert get(client, token, "series").status_code == 429


def test_each_token_has_its_rate_in_points(client: Client, token: str, settings: Any) -> None:
    settings.API_POINTS_A_MINUTE = 10_000
    ApiToken.objects.update(points_left=1.5, requests_left=100)
    no_time_passes()
    two = document(*[{"problem": "mm", "value": n} for n in range(200)])
    refused = send(client, token, two)
    assert refused.status_code == 429
    assert counts() == [0] * len(STORED)
    assert ApiToken.objects.get().points_left > 1, "what is refused costs no points"
    ApiToken.objects.update(allowed_at=timezone.now() - timedelta(seconds=30))
    assert send(client, token, two).status_code == 200


def test_large_bodies_are_taken_with_a_genuine_token_alone(
    client: Client, token: str, settings: Any
) -> None:
    settings.API_BODY_MAX_BYTES = 5_000_000
    assert bodies.max_body_bytes(RESULTS, "", "", f"Bearer {token}") == 5_000_000
    for other in ("", "Bearer kiln_x", f"Basic {token}", f"Bearer {token[:-1]}0{token[-1]}"):
        assert bodies.max_body_bytes(RESULTS, "", "", other) == bodies.DEFAULT_LIMIT
    assert bodies.max_body_bytes("/import", "", "", f"Bearer {token}") == bodies.DEFAULT_LIMIT
    padded = json.dumps(document()) + " " * 4_000_000
    assert send(client, token, padded).status_code == 200
    assert send(client, token, padded + " " * 2_000_000).status_code == 413


def test_the_same_key_at_once_is_stored_once(
    client: Client, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the other batch was committed after this one had looked for the key."""
    from codegen_app.tracking.services import ingest

    first = send(client, token)
    answers = iter([None, *[first.json()] * 2])
    monkeypatch.setattr(ingest, "_previous_answer", lambda *_: next(answers))
    with transaction.atomic():
        again = send(client, token)
    assert again.json() == first.json()
    assert Datum.objects.count() == 1


def test_the_page_makes_a_token_shows_it_once_and_revokes_it(client: Client, owner: User) -> None:
    client.force_login(owner)
    assert "no API token yet" in client.get("/tokens").content.decode()
    answer = client.post("/tokens", {"name": "CI <1>", "scopes": ["ingest"], "days": 30})
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    text = answer.content.decode().split('id="token">')[1].split("<")[0]
    row = ApiToken.objects.get()
    assert tokens.find_token(text) == row
    assert 29 <= (row.expires_at - timezone.now()).days <= 30
    page = client.get("/tokens").content.decode()
    assert text not in page
    assert "CI &lt;1&gt;" in page
    client.post(f"/tokens/{row.pk}/revoke", {"why": "it leaked"})
    assert tokens.find_token(text) is None
    acts = {entry.action: entry for entry in AuditEntry.objects.all()}
    assert acts["revoke token"].why == "it leaked"
    assert text not in " ".join(entry.what for entry in acts.values())
    for form in ({"name": "", "scopes": ["ingest"], "days": 1}, {"name": "a", "days": 99999}):
        assert client.post("/tokens", form).status_code == 422
    assert ApiToken.objects.count() == 1


def test_ones_own_tokens_are_listed_in_json_without_their_texts(
    tuner: Client, owner: User, token: str
) -> None:
    mine = tokens.create_token(User.objects.get(username="tuner"), "mine", ["read"], None)[1]
    answer = tuner.get("/tokens.json")
    (row,) = answer.json()["tokens"]
    assert (row["name"], row["scopes"], row["expires_at"]) == ("mine", "read", None)
    assert mine not in answer.content.decode()
    assert tuner.get("/api/v1/docs.json").json()["operations"]


def test_nobody_revokes_the_token_of_another(tuner: Client, token: str) -> None:
    row = ApiToken.objects.get()
    assert tuner.post(f"/tokens/{row.pk}/revoke").status_code == 404
    assert row.prefix not in tuner.get("/tokens").content.decode()


def test_the_api_describes_itself_without_other_hosts(reader: Client) -> None:
    page = reader.get("/api/v1/docs").content.decode()
    schema = reader.get("/api/v1/openapi.json").json()
    of_workers = {path for path in schema["paths"] if path.startswith("/api/v1/worker/")}
    assert len(of_workers) == 8
    assert set(schema["paths"]) - of_workers == {
        RESULTS,
        "/api/v1/series",
        "/api/v1/requests",
        "/api/v1/requests/{pk}/skip",
        "/api/v1/series/{pk}",
        "/api/v1/series/{pk}/data",
        "/api/v1/series/{pk}/data/{datum}/withdraw",
        "/api/v1/series/{pk}/data/{datum}/restore",
        "/api/v1/series/{pk}/data/{datum}/annotate",
        "/api/v1/series/{pk}/annotations",
        "/api/v1/series/{pk}/annotations/{annotation}/remove",
        "/api/v1/series/{pk}/thresholds",
        "/api/v1/series/{pk}/thresholds/reset",
        "/api/v1/alerts",
        "/api/v1/alerts/{pk}",
        "/api/v1/alerts/{pk}/changes",
        "/api/v1/alerts/{pk}/events",
        "/api/v1/alerts/triage",
        "/api/v1/rules",
        "/api/v1/rules/try",
        "/api/v1/rules/{pk}",
        "/api/v1/rules/{pk}/move",
        "/api/v1/rules/{pk}/remove",
        "/api/v1/budgets",
        "/api/v1/compare",
    }
    text = json.dumps(schema)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in schema["components"]["schemas"]
    for path in schema["paths"]:
        assert path in page
    assert "<script" not in page.split("</head>")[1]
    answer = reader.get("/api/v1/client.py")
    compile(answer.content, "kiln_client.py", "exec")
    assert answer.headers["Content-Type"].startswith("text/x-python")


def test_the_web_server_waits_for_a_large_body_of_a_genuine_token(token: str) -> None:
    def limit(authorization: str) -> tuple[int, bool]:
        parser = Parser(Adjustments())
        head = f"POST {RESULTS} HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n"
        parser.received(f"{head}Authorization: {authorization}\r\n\r\n".encode())
        return parser.limit, parser.error is None

    assert limit(f"Bearer {token}") == (settings.API_BODY_MAX_BYTES, True)
    assert limit("Bearer kiln_x") == (bodies.DEFAULT_LIMIT, False)


@pytest.mark.django_db(transaction=True)
def test_the_client_and_the_site_understand_each_other(
    live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    owner = User.objects.create_superuser("ci")
    row, text = tokens.create_token(owner, "CI", ["ingest"], None)
    (tmp_path / "token").write_text(text)
    results = Path(__file__).parents[2] / "unit" / "results" / "files" / "google_benchmark.json"
    given = ["push", str(results), "--url", live_server.url, "--token-file", f"{tmp_path}/token"]
    said = ["--revision", "abc", "--revision-at", "2026-11-20T10:00:00+01:00", "--device", "H200"]
    for _ in range(2):
        assert kiln_client.main([*given, *said]) == kiln_client.STORED
    assert (Batch.objects.count(), Datum.objects.count()) == (1, 7)
    assert "BM_gemm_f8: this CPU has no f8" in capsys.readouterr().err
    assert kiln_client.main([*given, *said, "--key", "k", "--format", "bmf"]) == kiln_client.REFUSED
    tokens.revoke(row, owner)
    assert kiln_client.main([*given, *said]) == kiln_client.NO_TOKEN
