"""Rules by patterns and budgets for programs: in their order, tried, changed, and read."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from codegen_app.accounts import tokens
from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import PatternRule
from tests.app.track_factories import budget, datum
from tests.app.tracking.test_api_alerts import Api, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = User.objects.create_user("ada")
    names = ("make_tokens", "triage")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def api(ada: User) -> Api:
    return Api(tokens.create_token(ada, "rules", ["read", "triage"], None)[1])


def proposal(**fields: Any) -> dict[str, Any]:
    return {"problem": ["gemm*"], "thresholds": {"muted": True}, "reason": "noisy"} | fields


def order(api: Api) -> list[int]:
    return [row["id"] for row in api.get("rules")["rules"]]


def test_rules_are_added_in_their_order_and_read(api: Api) -> None:
    first = api.post("rules", proposal(thresholds={"least_effect": 0.02, "stale_after": "P7D"}))
    second = api.post("rules", proposal(thresholds=None, owner="ada", position=1))
    third = api.post("rules", proposal(thresholds=None, owner=""))
    assert order(api) == [second["id"], first["id"], third["id"]]
    rows = api.get("rules")["rules"]
    assert rows[1]["thresholds"] == {
        "least_effect": 0.02,
        "muted": False,
        "stale_after": "P7DT00H00M00S",
    }
    assert [row["owner"] for row in rows] == ["ada", None, ""]
    assert (rows[0]["problem"], rows[0]["device"], rows[0]["changed_by"]) == (["gemm*"], [], "ada")
    assert AuditEntry.objects.filter(action="add rule").count() == 3


def test_a_rule_is_replaced_moved_and_removed(api: Api) -> None:
    first, second = (api.post("rules", proposal(reason=str(n)))["id"] for n in range(2))
    edited = api.post(f"rules/{first}", proposal(problem=["softmax"]))
    assert (edited["position"], edited["problem"]) == (1, ["softmax"])
    assert order(api) == [edited["id"], second]
    refused(api.post(f"rules/{first}", proposal(), 404), f"rule {first} does not exist")
    for _ in range(2):
        api.post(f"rules/{edited['id']}/move", {"position": 2})
    assert order(api) == [second, edited["id"]]
    api.post(f"rules/{second}/remove", {"reason": "quiet now"})
    assert order(api) == [edited["id"]]
    refused(api.post(f"rules/{second}/remove", {"reason": "again"}, 404), "does not exist")


def test_a_repeated_request_adds_one_rule(api: Api) -> None:
    first = api.post("rules", proposal(), key="k")
    assert api.post("rules", proposal(), key="k") == first
    assert PatternRule.objects.count() == 1


def test_a_rule_is_tried_before_it_is_added(api: Api) -> None:
    point = datum()
    point.series.points, point.series.last_at = 1, point.at
    point.series.save()
    trial = api.post("rules/try", proposal())
    assert (trial["matching"], trial["decided"], trial["muted"]) == (1, 1, 1)
    assert [row["series"] for row in trial["tried"]] == [point.series_id]
    assert api.post("rules/try", proposal(problem=["softmax"]))["matching"] == 0
    assert not PatternRule.objects.exists()


def test_what_is_wrong_with_a_rule_is_said(api: Api) -> None:
    User.objects.create_user("eve")
    for wrong, words in (
        ({"thresholds": None}, ("decides",)),
        ({"owner": "nobody here"}, ("owner", "nobody here")),
        ({"owner": "eve"}, ("eve", "permission")),
        ({"problem": ["a\0b"]}, ("problem", "NUL")),
        ({"problem": ["x" * 201]}, ("problem", "200")),
        ({"path": ["!a"]}, ("path", "exclusions")),
        ({"thresholds": {"least_effect": 2}}, ("least_effect",)),
        ({"thresholds": {"mute": True}}, ("mute",)),
        ({"problems": ["a"]}, ("problems",)),
        ({"position": 0}, ("position",)),
        ({"reason": " "}, ("reason",)),
    ):
        refused(api.post("rules", proposal(**wrong), 422), *words)
    refused(api.post(f"rules/{2**70}/remove", {"reason": "x"}, 404), "does not exist")
    assert not PatternRule.objects.exists()


def test_rules_need_the_scope_triage(ada: User) -> None:
    reading = Api(tokens.create_token(ada, "reads", ["read"], None)[1])
    assert reading.get("rules") == {"rules": [], "unfinished": False}
    for address in ("rules", "rules/try", "rules/1"):
        refused(reading.post(address, proposal(), 403), "triage")


def test_budgets_have_their_values(api: Api) -> None:
    point = datum(value=120.0)
    point.series.points, point.series.last_at = 1, point.at
    point.series.save()
    budget(name="fast", limit=60.0, problem=["gemm"])
    budget(name="none", limit=60.0, problem=["softmax"])
    rows = {row["name"]: row for row in api.get("budgets")["budgets"]}
    assert (rows["fast"]["value"], rows["fast"]["met"]) == (120.0, False)
    assert (rows["fast"]["problem"], rows["fast"]["n_series"]) == (["gemm"], 1)
    assert (rows["none"]["value"], rows["none"]["met"]) == (None, None)
    assert "no series matches" in rows["none"]["reason"]
