"""The environment is read strictly: what cannot be meant stops the start, with its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.broker import transport
from codegen_app.platform.config import env


@pytest.mark.parametrize(("text", "meant"), [("1", True), ("Yes", True), ("0", False), ("off", 0)])
def test_flag(text: str, meant: bool) -> None:
    assert env.flag("X", default=not meant, environ={"X": text}) is bool(meant)


def test_an_empty_variable_is_not_set() -> None:
    assert env.flag("X", default=True, environ={"X": " "})
    assert env.integer("X", 7, environ={"X": ""}) == 7
    assert env.words("X", "a,b", environ={}) == ["a", "b"]


@pytest.mark.parametrize("text", ["maybe", "2", "tru"])
def test_a_flag_that_is_neither_is_named(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="KILN_X"):
        env.flag("KILN_X", default=False, environ={"KILN_X": text})


@pytest.mark.parametrize("text", ["many", "1.5", "-1", "0"])
def test_a_number_that_cannot_be_is_named(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="KILN_X"):
        env.integer("KILN_X", 1, minimum=1, environ={"KILN_X": text})


def test_database_url_with_everything() -> None:
    made = env.database("postgresql://us%40er:p%2Fw@db.example:5433/name?sslmode=require")
    assert made["USER"] == "us@er"
    assert made["PASSWORD"] == "p/w"
    assert (made["HOST"], made["PORT"], made["NAME"]) == ("db.example", "5433", "name")
    assert made["OPTIONS"] == {"sslmode": "require"}


def test_database_url_of_a_socket() -> None:
    made = env.database("postgresql://postgres@/kiln?host=/var/lib/some/run")
    assert (made["HOST"], made["PORT"], made["NAME"]) == ("/var/lib/some/run", "", "kiln")
    assert made["OPTIONS"] == {}


def test_database_url_of_several_hosts() -> None:
    made = env.database("postgresql://kiln@db1:5432,db2:5433/x?target_session_attrs=read-write")
    assert (made["HOST"], made["PORT"], made["NAME"]) == ("db1,db2", "5432,5433", "x")
    assert made["OPTIONS"] == {"target_session_attrs": "read-write"}


@pytest.mark.parametrize("url", ["kiln:a/b@h/x", "kiln:a@b@h/x", "h:port/x", "h/x?sslmod=require"])
def test_a_database_url_that_libpq_would_misread_is_rejected(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="cannot be read"):
        env.database(f"postgresql://{url}")


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite:///x", "h/d"])
def test_another_database_is_rejected(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="postgresql://"):
        env.database(url)


@pytest.mark.parametrize("scheme", ["filesystem", "sqla+postgresql", "sqlalchemy"])
def test_a_broker_that_loses_messages_is_refused(scheme: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"KILN_BROKER_URL.*leave it empty"):
        env.broker("KILN_BROKER_URL", "", {"KILN_BROKER_URL": f"{scheme}://localhost"})


@pytest.mark.parametrize("url", [transport.DEFAULT_URL, "redis://host/0", "amqp://host"])
def test_other_brokers_are_taken_as_they_are(url: str) -> None:
    assert env.broker("KILN_BROKER_URL", "", {"KILN_BROKER_URL": url}) == url


def test_every_variable_is_documented() -> None:
    root = Path(__file__).resolve().parents[2]
    config = root / "codegen_app" / "platform" / "config"
    files = ("settings.py", "storage.py", "sign_in.py", "tracing.py")
    source = "".join((config / file).read_text() for file in files)
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', source)) - {"AWS_REGION", "AWS_DEFAULT_REGION"}
    documented = set(re.findall(r"^\| `(\w+)`", (root / "deploy" / "README.md").read_text(), re.M))
    assert len(read) > 10
    assert read == documented
