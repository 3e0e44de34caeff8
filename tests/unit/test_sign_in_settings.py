"""The provider is said by variables; each that is wrong stops the start with its name."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import sign_in

LEAST = {
    "KILN_OIDC_ISSUER": "https://login.example/realms/team",
    "KILN_OIDC_CLIENT_ID": "kiln",
    "KILN_OIDC_CLIENT_SECRET": "very secret",
    "KILN_SITE_URL": "https://kiln.example",
}


def test_without_an_issuer_there_is_no_provider() -> None:
    assert sign_in.provider({}) is None


def test_the_least_and_all() -> None:
    made = sign_in.provider(LEAST)
    assert made is not None
    assert (made.name, made.domains, made.groups) == ("login.example", (), {})
    assert "very secret" not in repr(made)
    made = sign_in.provider(
        LEAST
        | {
            "KILN_OIDC_NAME": "Team",
            "KILN_OIDC_DOMAINS": "Team.example, other.example",
            "KILN_OIDC_GROUPS_CLAIM": "roles",
            "KILN_OIDC_GROUPS": "kernel-team = Builders, leads=Tuners",
        }
    )
    assert made is not None
    assert made.name == "Team"
    assert made.domains == ("team.example", "other.example")
    assert made.groups_claim == "roles"
    assert made.groups == {"kernel-team": "Builders", "leads": "Tuners"}


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"KILN_OIDC_NAME": "Team"}, "KILN_OIDC_NAME is set, KILN_OIDC_ISSUER is not"),
        (LEAST | {"KILN_OIDC_CLIENT_ID": ""}, "KILN_OIDC_CLIENT_ID is not"),
        (LEAST | {"KILN_OIDC_CLIENT_SECRET": ""}, "KILN_OIDC_CLIENT_SECRET is not"),
        (LEAST | {"KILN_SITE_URL": ""}, "KILN_OIDC_ISSUER is set, KILN_SITE_URL is not"),
        (LEAST | {"KILN_OIDC_ISSUER": "login.example"}, "KILN_OIDC_ISSUER='login.example'"),
        (LEAST | {"KILN_OIDC_ISSUER": "http://login.example"}, "is not an issuer such as https://"),
        (LEAST | {"KILN_OIDC_DOMAINS": "@team.example"}, "KILN_OIDC_DOMAINS: '@team.example'"),
        (LEAST | {"KILN_OIDC_DOMAINS": "*.team.example"}, "KILN_OIDC_DOMAINS"),
        (LEAST | {"KILN_OIDC_GROUPS": "Builders"}, "KILN_OIDC_GROUPS: 'Builders' is not a pair"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, str], line: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        sign_in.provider(wrong)
    assert line in str(caught.value)
    assert "very secret" not in str(caught.value)


def test_without_the_extra_the_start_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "find_spec", lambda _: None)
    with pytest.raises(ImproperlyConfigured, match=r"kiln\[oidc\]"):
        sign_in.provider(LEAST)
