"""Logging in: who guesses is stopped before it costs, and a login ends."""

from __future__ import annotations

import re
import runpy
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from django.conf import settings as project
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import call_command
from django.test import Client, RequestFactory, override_settings

from codegen_app.accounts import hashing
from codegen_app.accounts.models import AuditEntry
from codegen_app.accounts.origin import client_address
from codegen_app.accounts.throttle import MAX_FAILURES
from codegen_app.platform.config import env, serving

pytestmark = pytest.mark.django_db
PASSWORD = "a quiet kiln at night"
BOUNDED = "codegen_app.accounts.hashing.BoundedPBKDF2PasswordHasher"


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ada", password=PASSWORD)


def log_in(client: Client, password: str, name: str = "ada", address: str = "10.0.0.1") -> int:
    data = {"username": name, "password": password}
    return client.post("/login/", data, REMOTE_ADDR=address).status_code


def test_five_wrong_passwords_stop_an_account_from_that_address_alone(
    client: Client, user: User
) -> None:
    for _ in range(MAX_FAILURES[0] - 1):
        assert log_in(client, "wrong") == 200
    assert log_in(client, "wrong") == 429
    assert log_in(client, PASSWORD) == 429, "the right one does not help while logins are stopped"
    assert log_in(client, PASSWORD, address="10.0.0.2") == 302


def test_twenty_wrong_passwords_stop_an_address_whatever_the_accounts(
    client: Client, user: User
) -> None:
    statuses = [log_in(client, "wrong", name=f"guess{n}") for n in range(MAX_FAILURES[1])]
    assert statuses[-2:] == [200, 429]
    assert log_in(client, PASSWORD) == 429


@pytest.mark.full
def test_an_account_is_stopped_for_guesses_from_many_addresses(client: Client, user: User) -> None:
    for n in range(MAX_FAILURES[2]):
        log_in(client, "wrong", address=f"10.1.{n}.1")
    assert log_in(client, PASSWORD, address="10.2.0.1") == 429


def test_a_login_does_not_buy_guesses_at_other_accounts(client: Client, user: User) -> None:
    User.objects.create_user("own", password=PASSWORD)
    for n in range(MAX_FAILURES[1] - 2):
        log_in(client, "wrong", name=f"guess{n}")
    assert log_in(client, PASSWORD, name="own") == 302
    log_in(client, "wrong", name="guess")
    assert log_in(client, "wrong", name="another") == 429


def test_the_admin_has_the_same_login(client: Client) -> None:
    answer = client.get("/admin/login/?next=/admin/")
    assert answer.headers["Location"] == "/login/?next=/admin/"
    assert client.get("/admin/password_change/").headers["Location"].startswith("/")


def test_nothing_is_hashed_while_logins_are_stopped(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(MAX_FAILURES[0]):
        log_in(client, "wrong")
    monkeypatch.setattr(User, "check_password", lambda *_: pytest.fail("it was hashed"))
    assert log_in(client, PASSWORD) == 429


@pytest.fixture
def all_slots_taken() -> Iterator[None]:
    for _ in range(hashing.MAX_CONCURRENT):
        assert hashing._slots.acquire(blocking=False)
    yield
    for _ in range(hashing.MAX_CONCURRENT):
        hashing._slots.release()


@override_settings(PASSWORD_HASHERS=[BOUNDED])
def test_more_logins_at_once_than_may_hash_are_refused_before_hashing(
    client: Client, all_slots_taken: None
) -> None:
    answer = client.post("/login/", {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "1"
    assert b"Try again" in answer.content
    assert not AuditEntry.objects.filter(action="login failed"), "nobody failed"


@override_settings(PASSWORD_HASHERS=[BOUNDED])
def test_a_slot_is_free_again_after_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing.BoundedPBKDF2PasswordHasher, "iterations", 1)
    for _ in range(hashing.MAX_CONCURRENT + 1):
        make_password(PASSWORD)


def test_served_passwords_are_hashed_with_that_bound() -> None:
    from codegen_app.platform.config import settings as as_served

    assert as_served.PASSWORD_HASHERS == [BOUNDED]


@pytest.mark.parametrize("password", ["short words", "password1234", "ada@example.org1"])
def test_weak_passwords_are_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="ada", email="ada@example.org"))


@pytest.mark.parametrize("password", ["twelve chars", "1" * 40, "ключ от печи", "x y" * 300])
def test_length_is_the_only_rule_of_composition(password: str) -> None:
    validate_password(password, User(username="ada"))


NEW = "another kiln by day"


def change(client: Client, old: str, new: str = NEW) -> int:
    data = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/password", data).status_code


def test_anybody_changes_their_password_and_other_logins_end(client: Client, user: User) -> None:
    other = Client()
    for one in (client, other):
        assert log_in(one, PASSWORD) == 302
    assert change(client, PASSWORD) == 302
    assert client.get("/password").status_code == 200
    assert other.get("/password").status_code == 302, "to the login"
    user.refresh_from_db()
    assert user.check_password(NEW)
    entry = AuditEntry.objects.get(action="change password")
    assert entry.actor == user


def test_a_wrong_old_password_changes_nothing_and_is_counted(client: Client, user: User) -> None:
    assert log_in(client, PASSWORD) == 302
    statuses = [change(client, "wrong") for _ in range(MAX_FAILURES[0])]
    assert statuses == [422] * (MAX_FAILURES[0] - 1) + [429]
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_a_login_ends_without_use_and_in_any_case(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr("codegen_app.accounts.sessions.time", clock)
    log_in(client, PASSWORD)
    for _ in range(project.SESSION_COOKIE_AGE // project.SESSION_IDLE_S):
        now += project.SESSION_IDLE_S - 1
        assert client.get("/password").status_code == 200
    now += project.SESSION_IDLE_S - 1
    assert client.get("/password").status_code == 302, "used all the time, but old"
    log_in(client, PASSWORD)
    now += project.SESSION_IDLE_S
    assert client.get("/password").status_code == 302, "not used"


def test_a_page_that_asks_by_itself_does_not_keep_a_login(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("codegen_app.accounts.sessions.time", SimpleNamespace(time=lambda: now))
    log_in(client, PASSWORD)
    for _ in range(3):
        now += project.SESSION_IDLE_S / 3
        client.get("/runs", headers={"HX-Request": "true"})
    assert client.get("/password").status_code == 302


def test_pages_of_a_login_are_kept_by_nobody(client: Client, user: User) -> None:
    log_in(client, PASSWORD)
    assert client.get("/password").headers["Cache-Control"] == "no-store"


def test_logins_and_failures_say_who_and_from_where(client: Client, user: User) -> None:
    log_in(client, "wrong", name="ada\n2026 INFO all is well")
    log_in(client, PASSWORD)
    client.post("/logout/", REMOTE_ADDR="10.0.0.9")
    out, into, failed = AuditEntry.objects.exclude(action="create")
    assert (out.action, into.action, failed.action) == ("logout", "login", "login failed")
    assert into.actor == user
    assert (into.actor_name, into.address) == ("ada", "10.0.0.1")
    assert out.address == "10.0.0.9"
    assert "\n" not in failed.what


def test_stopped_logins_are_noted_once(client: Client, user: User) -> None:
    for _ in range(MAX_FAILURES[0] + 10):
        log_in(client, "wrong")
    assert AuditEntry.objects.filter(action="login failed").count() == MAX_FAILURES[0]
    assert AuditEntry.objects.filter(action="logins stopped").count() == 1


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "9.9.9.9", "10.0.0.1"),
        (1, "9.9.9.9, 8.8.8.8", "8.8.8.8"),
        (2, "9.9.9.9, 8.8.8.8, 7.7.7.7", "8.8.8.8"),
        (2, "8.8.8.8", "10.0.0.1"),
        (1, "nonsense", "10.0.0.1"),
        (1, "", "10.0.0.1"),
    ],
)
def test_an_address_is_what_our_proxies_say(proxies: int, forwarded: str, address: str) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=forwarded)
    with override_settings(TRUSTED_PROXIES=proxies):
        assert client_address(request) == address


def settings_with(**changes: object) -> SimpleNamespace:
    good = {
        "DEBUG": False,
        "SECRET_KEY_GIVEN": True,
        "SECRET_KEY": "Uq3vX9mK2pR7tY5wZ8bN4cJ6fH1gL0dS",
        "HTTPS": True,
        "TRUSTED_PROXIES": 1,
        "ALLOWED_HOSTS": ["kiln.example"],
        "ALLOWED_HOSTS_GIVEN": True,
        "CSRF_TRUSTED_ORIGINS": ["https://kiln.example"],
        "PASSWORD_LOGIN": True,
        "OIDC": None,
    }
    return SimpleNamespace(**{**good, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"SECRET_KEY_GIVEN": False}, "KILN_SECRET_KEY"),
        ({"SECRET_KEY": "secret"}, "KILN_SECRET_KEY"),
        ({"DEBUG": True}, "KILN_DEBUG"),
        ({"ALLOWED_HOSTS_GIVEN": False}, "KILN_ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": ["*"]}, "KILN_ALLOWED_HOSTS"),
        ({"TRUSTED_PROXIES": 0}, "KILN_TRUSTED_PROXIES"),
        ({"CSRF_TRUSTED_ORIGINS": ["http://kiln.example"]}, "KILN_TRUSTED_ORIGINS"),
        ({"PASSWORD_LOGIN": False}, "KILN_PASSWORD_LOGIN"),
    ],
)
def test_pages_are_not_served_with_half_settings(
    changes: dict[str, object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serving.serving_problems(settings_with()) == []
    (line,) = serving.serving_problems(settings_with(**changes))
    assert named in line
    with pytest.raises(SystemExit) as ended:
        serving.check(settings_with(**changes))
    assert ended.value.code
    assert capsys.readouterr().err == f"kiln: {line}\n"


def test_the_way_in_for_servers_asks_for_a_key(
    settings: object, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.SECRET_KEY_GIVEN = False
    with pytest.raises(SystemExit):
        runpy.run_module("codegen_app.platform.config.wsgi")
    assert "KILN_SECRET_KEY is not set" in capsys.readouterr().err


def test_errors_and_commands_show_no_password(
    settings: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        env.database("postgresql://kiln:hunter2/x@host/kiln")
    assert "hunter2" not in str(error.value)
    settings.CELERY_BROKER_URL = "redis://kiln:hunter2@host/0"
    settings.SECRET_KEY = "hunter2"
    settings.DATABASES["default"]["PASSWORD"] = "hunter2"
    for output in ("hash", "unified"):
        call_command("diffsettings", all=True, output=output)
    shown = capsys.readouterr().out
    assert "CELERY_BROKER_URL" in shown
    assert "hunter2" not in shown


def test_changes_of_accounts_and_rights_are_noted(admin_client: Client, user: User) -> None:
    permission = Permission.objects.get(codename="retune")
    page = admin_client.get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert "ada" in page
    dates = dict(re.findall(r'name="(date_joined_[01])" value="([^"]+)"', page))
    data = {"username": "ada", "user_permissions": [permission.pk], "is_staff": "on", **dates}
    assert admin_client.post(f"/admin/auth/user/{user.pk}/change/", data).status_code == 302
    rights = AuditEntry.objects.get(action="change rights")
    assert rights.actor_name == "admin"
    assert rights.why == "given: retune"
    changed = AuditEntry.objects.filter(action="change").latest("at")
    assert "is_staff" in changed.why
    admin_client.post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"})
    assert AuditEntry.objects.filter(action="delete", what__contains="ada", actor_name="admin")
