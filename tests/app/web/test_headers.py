"""The headers of every answer, and the reports that browsers send."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from codegen_app.web import csp_reports

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("address", ["/login/", "/nothing/here", "/kernels.json"])
def test_every_answer_has_the_headers(client: Client, address: str) -> None:
    headers = client.get(address).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]
    assert "report-to csp" in headers["Content-Security-Policy"]
    assert headers["Reporting-Endpoints"] == 'csp="/csp-reports"'


def test_an_unknown_host_is_refused(client: Client) -> None:
    assert client.get("/login/", headers={"Host": "evil.example"}).status_code == 400


@pytest.fixture(autouse=True)
def _fresh_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csp_reports, "_rate", csp_reports._Rate())


def report(client: Client, body: bytes, kind: str = "application/csp-report") -> int:
    return client.post("/csp-reports", body, content_type=kind).status_code


OLD = {"csp-report": {"document-uri": "http://kiln/x\nERROR", "blocked-uri": "http://evil"}}
NEW = [{"type": "csp-violation", "body": {"documentURL": "http://kiln/x", "blockedURL": "inline"}}]


@pytest.mark.parametrize("body", [OLD, NEW, [], {}, None, {"csp-report": 1}, [1], "\u2028"])
def test_a_report_is_one_line_whatever_it_holds(
    client: Client, body: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, csp_reports.__name__):
        assert report(client, json.dumps(body).encode()) == 204
    (record,) = caplog.records
    assert record.getMessage().isascii()
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 1500


def test_reports_are_bounded_in_size_and_number(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert report(client, b"x" * (csp_reports.MAX_BYTES + 1)) == 413
    with caplog.at_level(logging.WARNING, csp_reports.__name__):
        assert report(client, b"[" * csp_reports.MAX_BYTES) == 204
        for _ in range(3 * csp_reports.MAX_PER_MINUTE):
            assert report(client, b"{}") == 204
    ours = [record for record in caplog.records if record.name == csp_reports.__name__]
    assert len(ours) == csp_reports.MAX_PER_MINUTE


SHOWN = """
import django
django.setup()
from django.test import Client
from unittest import mock
answer = Client().get("/login/", headers={"Host": "kiln.example", "X-Forwarded-Proto": "https"})
print(answer.headers["Strict-Transport-Security"])
print(*sorted(str(cookie) for cookie in answer.cookies.values()), sep="\\n")
print(Client().get("/login/", headers={"Host": "kiln.example"}).headers["Location"])
"""


@pytest.mark.full
def test_https_is_kept_to_and_cookies_are_of_this_host_alone(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",  # the page needs none
        "KILN_VAR": str(tmp_path),
        "KILN_HTTPS": "1",
        "KILN_ALLOWED_HOSTS": "kiln.example",
    }
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "staticfiles.json").write_text(MANIFEST)
    done = subprocess.run(
        [sys.executable, "-c", SHOWN],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    hsts, cookie, location = done.stdout.splitlines()
    assert hsts == "max-age=31536000; includeSubDomains"
    assert "__Host-csrftoken=" in cookie
    for attribute in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert attribute in cookie
    assert "Domain" not in cookie
    assert location == "https://kiln.example/login/"


STATIC = (
    *("img/kiln.svg", "css/web/tokens.css", "css/web/base.css", "css/web/components.css"),
    *("css/web/palette.css", "css/web/live.css"),
    *("vendor/htmx/htmx.min.js", "js/web/main.js"),
)
MANIFEST = json.dumps({"version": "1.1", "paths": {one: one for one in STATIC}})
