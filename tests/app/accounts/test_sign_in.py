"""Signing in at a real OpenID provider over loopback: who is let in as whom, and who is not."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client

from codegen_app.accounts import oidc
from codegen_app.accounts.models import AuditEntry, Identity
from codegen_app.accounts.throttle import MAX_FAILURES
from tests.app.installations import Installation
from tests.support.oidc_process import PERSON
from tests.support.oidc_server import OidcServer
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.django_db
BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "codegen_app.accounts.backends.IdentityBackend",
]
AFTER = "/kernels?q=gemm&sort=-time"


@pytest.fixture(scope="module")
def process() -> Iterator[OidcServer]:
    made = OidcServer()
    made.start()
    yield made
    made.kill()


@pytest.fixture
def server(process: OidcServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> OidcServer:
    process.says()
    monkeypatch.setattr(oidc, "_TIMEOUT_S", PATIENCE_S)
    oidc._client_cache.clear()
    settings.OIDC = process.provider()
    settings.SITE_URL = "http://testserver"
    settings.AUTHENTICATION_BACKENDS = BACKENDS
    return process


def sign_in(client: Client, server: OidcServer, after: str = AFTER) -> Any:
    """All the way; the answer to coming back."""
    return client.get(come_back(client, server, after))


def come_back(client: Client, server: OidcServer, after: str = AFTER) -> str:
    begun = client.get("/login/oidc/", {"next": after})
    assert begun.status_code == 302, begun.content
    return server.agree(begun.headers["Location"])


def refused(client: Client, answer: Any) -> str:
    """The one line on the login page, to which one was led."""
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/")
    page = client.get(answer.headers["Location"])
    assert not page.wsgi_request.user.is_authenticated
    lines = [str(message) for message in page.context["messages"]]
    assert len(lines) == 1
    return lines[0]


def test_the_first_sign_in_makes_an_account_that_reads(client: Client, server: OidcServer) -> None:
    page = client.get("/login/", {"next": AFTER}).content.decode()
    assert "Sign in with Team Login" in page
    answer = sign_in(client, server)
    assert (answer.status_code, answer.headers["Location"]) == (302, AFTER)
    user = User.objects.get()
    assert (user.username, user.email) == ("ada", "ada@team.example")
    assert not (user.is_staff or user.is_superuser or user.has_usable_password())
    assert not user.get_all_permissions()
    assert client.get("/graphs").wsgi_request.user == user
    entries = AuditEntry.objects.order_by("pk").values_list("action", "why")
    assert ("login", "by Team Login") in entries
    made = AuditEntry.objects.filter(action="create").values_list("what", flat=True)
    assert {row.partition(" ")[0] for row in made} == {"user", "identity"}
    assert client.get("/password", follow=True).redirect_chain, "there is none to change"

    client.post("/logout/")
    assert not client.get("/login/").wsgi_request.user.is_authenticated
    assert AuditEntry.objects.filter(action="logout").count() == 1
    server.says(person={"preferred_username": "ada.lovelace", "email": "other@team.example"})
    sign_in(client, server)
    assert User.objects.get() == user, "the subject is the same, so is the account"


def test_a_name_or_an_address_opens_nobodys_account(client: Client, server: OidcServer) -> None:
    owner = User.objects.create_superuser("ada", "ada@team.example", "a long password of hers")
    sign_in(client, server)
    new = Identity.objects.get().user
    assert new != owner
    assert new.username == "ada-2"
    assert not new.is_superuser
    server.says(person={"sub": "another", "preferred_username": "<script>ADA"})
    client.post("/logout/")
    sign_in(client, server)
    assert Identity.objects.get(subject="another").user.username == "scriptADA"


def test_an_account_that_is_there_is_linked_by_the_operator(
    client: Client, server: OidcServer
) -> None:
    owner = User.objects.create_user("ada", password="a long password of hers")
    call_command("link_identity", "ada", PERSON["sub"], stdout=StringIO())
    sign_in(client, server)
    assert client.get("/graphs").wsgi_request.user == owner
    with pytest.raises(CommandError, match="is already linked to ada"):
        call_command("link_identity", "ada", PERSON["sub"])
    call_command("link_identity", "ada", PERSON["sub"], "--remove", stdout=StringIO())
    client.post("/logout/")
    sign_in(client, server)
    assert client.get("/graphs").wsgi_request.user != owner


def test_a_closed_account_stays_closed(client: Client, server: OidcServer) -> None:
    sign_in(client, server)
    client.post("/logout/")
    User.objects.update(is_active=False)
    assert refused(client, sign_in(client, server)) == "Your account here is closed."
    assert AuditEntry.objects.filter(action="login failed").count() == 1


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"claims": {"iss": "https://another.example"}}, "is invalid: see the server"),
    ({"claims": {"aud": "another client"}}, "is invalid: see the server"),
    ({"claims": {"nonce": "of another sign-in"}}, "is invalid: see the server"),
    ({"claims": {"nonce": None}}, "is invalid: see the server"),
    ({"other_key": True}, "is invalid: see the server"),
    ({"no_id_token": True}, "sent no user identity"),
    ({"clock": -3600}, "its clock and this server's differ"),
    ({"clock": 3600}, "its clock and this server's differ"),
    ({"error": "access_denied"}, "Team Login did not let you in: access_denied"),
    ({"error": "<script>"}, "Team Login did not let you in: an error"),
    ({"person": {"sub": ""}}, "sent no user identity"),
    ({"drop": ["email"], "userinfo": {"sub": "another"}}, "sent two different user identities"),
]


@pytest.mark.parametrize(("fault", "line"), FAULTS)
def test_what_cannot_be_believed_logs_nobody_in(
    client: Client, server: OidcServer, fault: dict[str, Any], line: str
) -> None:
    server.says(**fault)
    assert line in refused(client, sign_in(client, server))
    assert not User.objects.exists()
    assert AuditEntry.objects.filter(action="login failed").count() == 1


def test_what_the_token_leaves_out_is_asked_for(client: Client, server: OidcServer) -> None:
    server.says(drop=["email", "email_verified", "preferred_username", "groups"])
    assert sign_in(client, server).headers["Location"] == AFTER
    assert (User.objects.get().username, User.objects.get().email) == ("ada", "ada@team.example")


def test_a_code_serves_once_and_for_whom_it_was_begun(client: Client, server: OidcServer) -> None:
    back = come_back(client, server)
    thief = Client()
    assert "was not started here" in refused(thief, thief.get(back))
    assert client.get(back).headers["Location"] == AFTER
    assert User.objects.count() == 1
    client.post("/logout/")
    assert "was not started here" in refused(client, client.get(back))


def test_another_state_a_forged_cookie_and_an_old_one_are_refused(
    client: Client, server: OidcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = come_back(client, server)
    other = back.replace("state=", "state=x")
    assert "was not started here" in refused(client, client.get(other))
    back = come_back(client, server)
    client.cookies[oidc.cookie_name()] = client.cookies[oidc.cookie_name()].value[:-1] + "x"
    assert "was not started here" in refused(client, client.get(back))
    back = come_back(client, server)
    monkeypatch.setattr(oidc, "COOKIE_S", -1)
    assert "than ten minutes" in refused(client, client.get(back))
    assert not User.objects.exists()
    assert not AuditEntry.objects.filter(action="login failed"), "anybody can ask that"


def test_a_code_of_another_sign_in_fails_by_pkce(client: Client, server: OidcServer) -> None:
    stolen = come_back(Client(), server).partition("code=")[2].partition("&")[0]
    back = come_back(client, server)
    mine = back.partition("code=")[2].partition("&")[0]
    assert "is invalid: see the server" in refused(client, client.get(back.replace(mine, stolen)))


@pytest.mark.parametrize(
    ("person", "is_in"),
    [
        ({}, True),
        ({"email": "ada@TEAM.example"}, True),
        ({"email_verified": False}, False),
        ({"email_verified": None}, False),
        ({"email": "ada@team.example.evil.example"}, False),
        ({"email": "team.example"}, False),
        ({"email": None}, False),
    ],
)
def test_only_verified_addresses_of_the_domains(
    client: Client, server: OidcServer, settings: Any, person: dict[str, Any], is_in: bool
) -> None:
    settings.OIDC = server.provider(KILN_OIDC_DOMAINS="team.example")
    server.says(person=person)
    answer = sign_in(client, server)
    if is_in:
        assert answer.headers["Location"] == AFTER
    else:
        assert "verified e-mail address of team.example" in refused(client, answer)
    assert User.objects.exists() == is_in


def test_groups_follow_the_claim_and_others_stay(
    client: Client, server: OidcServer, settings: Any
) -> None:
    pairs = "kernel-team=Builders,leads=Tuners,nobody=No such group"
    settings.OIDC = server.provider(KILN_OIDC_GROUPS=pairs)
    sign_in(client, server)
    user = User.objects.get()
    user.groups.add(Group.objects.get(name="Importers"))
    assert {group.name for group in user.groups.all()} == {"Builders", "Importers"}
    server.says(person={"groups": ["leads", "admins"]})
    sign_in(client, server)
    assert {group.name for group in user.groups.all()} == {"Tuners", "Importers"}
    server.says(person={"groups": None})
    sign_in(client, server)
    assert {group.name for group in user.groups.all()} == {"Importers"}
    assert AuditEntry.objects.filter(action="change rights", why="no longer: Tuners").exists()


@pytest.mark.parametrize("after", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_it_leads_to_no_other_site(client: Client, server: OidcServer, after: str) -> None:
    assert sign_in(client, server, after).headers["Location"] == "/"


def test_failures_are_counted_by_the_address_alone(client: Client, server: OidcServer) -> None:
    User.objects.create_user("own", password="a long password of hers")
    server.says(other_key=True)
    for _ in range(MAX_FAILURES[1] - 1):
        assert sign_in(client, server).status_code == 302
    assert sign_in(client, server).status_code == 429
    server.says()
    assert sign_in(client, server).status_code == 429
    elsewhere = Client(REMOTE_ADDR="10.9.9.9")
    assert sign_in(elsewhere, server).status_code == 302
    given = {"username": "own", "password": "a long password of hers"}
    assert Client(REMOTE_ADDR="10.9.9.8").post("/login/", given).status_code == 302


def test_a_provider_that_is_away_is_one_line_and_passwords_go_on(
    client: Client, server: OidcServer, process: OidcServer
) -> None:
    User.objects.create_user("own", password="a long password of hers")
    back = come_back(client, server)
    process.kill()
    try:
        assert refused(client, client.get(back)) == "Team Login does not answer: try again."
        oidc._client_cache.clear()
        answer = client.get("/login/oidc/", {"next": AFTER})
        assert refused(client, answer) == "Team Login does not answer: try again."
        given = {"username": "own", "password": "a long password of hers", "next": AFTER}
        assert client.post("/login/", given).headers["Location"] == AFTER
    finally:
        process.start()
    client.post("/logout/")
    assert sign_in(client, server).headers["Location"] == AFTER, "with keys of another process"


def test_passwords_can_be_switched_off(client: Client, server: OidcServer, settings: Any) -> None:
    User.objects.create_user("own", password="a long password of hers")
    given = {"username": "own", "password": "a long password of hers"}
    assert client.post("/login/", given).status_code == 302
    assert client.get("/graphs").status_code == 200
    settings.PASSWORD_LOGIN = False
    settings.AUTHENTICATION_BACKENDS = [BACKENDS[0], BACKENDS[2]]
    assert client.get("/graphs").status_code == 302, "such a login is over"
    page = client.get("/login/").content.decode()
    assert 'name="password"' not in page
    assert client.post("/login/", given).status_code == 403
    assert AuditEntry.objects.filter(action="login").count() == 1, "the first alone"
    assert sign_in(client, server).headers["Location"] == AFTER


def test_without_a_provider_there_are_no_such_addresses(client: Client) -> None:
    assert client.get("/login/oidc/").status_code == 404
    assert client.get("/login/oidc/back/").status_code == 404
    assert "Sign in with" not in client.get("/login/").content.decode()


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({}, ""),
        ({"configured_issuer": "http://127.0.0.1/other"}, "they must be the same to the letter"),
    ],
)
def test_a_deployments_check_asks_the_provider(
    server: OidcServer, tmp_path: Path, wrong: dict[str, str], line: str
) -> None:
    server.says(**wrong)
    made = Installation(tmp_path, "postgresql://nobody@127.0.0.1:9/none", server.environment())
    done = made.manage("check", "--deploy", "--tag", "security")
    assert ("kiln.E003" in done.stderr) == bool(line)
    assert line in done.stderr
    assert "Traceback" not in done.stderr
