"""deploy/nginx: a real nginx with our configuration before the real web server."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codegen_app.web.server import bodies
from tests.app.platform.test_deployed import PRODUCTION
from tests.app.processes import ROOT, SECRET_KEY, worker_environment
from tests.support import nginx
from tests.support.ports import free_port
from tests.support.web_server import iter_until

INSIDE, OUTSIDE = "127.0.0.2", "127.0.0.3"  # addresses of clients
MIB = 1 << 20


@pytest.fixture
def proxy(transactional_db: None, tmp_path: Path) -> Iterator[nginx.Proxy]:
    if lacking := nginx.lacking():
        pytest.skip(lacking)
    port = free_port()
    environment = (
        worker_environment(tmp_path, "")
        | {name: value for name, value in PRODUCTION.items() if name != "DATABASE_URL"}
        | {"KILN_SECRET_KEY": SECRET_KEY, "KILN_METRICS_NETWORKS": f"{INSIDE}/32"}
    )
    command = (
        *(sys.executable, "-m", "gunicorn", "--config", "python:codegen_app.platform.config.web"),
        *("--bind", f"127.0.0.1:{port}", "--workers", "1"),
    )
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            said = b"".join(iter_until(b"Booting worker", server.stderr))
            assert b"Booting worker" in said, said.decode()
            threading.Thread(target=server.stderr.read, daemon=True).start()
            with nginx.before(tmp_path / "nginx", f"127.0.0.1:{port}") as made:
                yield made
        finally:
            server.terminate()


def asked(
    connection: HTTPConnection, address: str, host: str = nginx.HOST, **headers: str
) -> tuple[HTTPResponse, bytes]:
    """The answer to a request of its own connection."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("GET", address, headers={"Host": host, **named})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def sent(proxy: nginx.Proxy, address: str, length: int) -> tuple[int, bool]:
    """The status for a body of so many bytes, and whether Kiln answered itself. Nothing of the body
    is sent: who would take it waits, and says nothing yet."""
    connection = proxy.https()
    try:
        connection.putrequest("POST", address, skip_host=True)
        for name, value in {
            "Host": nginx.HOST,
            "Content-Length": str(length),
            "Origin": f"https://{nginx.HOST}",
        }.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, b"nginx" not in answer.read()
    finally:
        connection.close()


@pytest.mark.full
def test_nginx_as_configured_serves_the_site_and_nothing_else(proxy: nginx.Proxy) -> None:
    answer, _ = asked(proxy.http(), "/graphs?page=2", X_Forwarded_Proto="https")
    assert (answer.status, answer.headers["Location"]) == (
        308,
        f"https://{nginx.HOST}/graphs?page=2",
    )
    for connection in (proxy.http(), proxy.https()):
        with pytest.raises(http.client.RemoteDisconnected):
            asked(connection, "/healthz", host="other.example")

    answer, body = asked(proxy.https(), "/healthz?key=secret")
    assert (answer.status, body) == (200, b"ok\n")
    request_id = answer.headers["X-Request-ID"]

    answer, _ = asked(proxy.https(), "/graphs")  # by HTTPS, for Django too: no redirect to it
    assert answer.status == 302
    assert answer.headers["Location"].startswith("/login/")
    assert "max-age=31536000" in answer.headers["Strict-Transport-Security"]

    for client, forged, status in ((INSIDE, OUTSIDE, 200), (OUTSIDE, INSIDE, 401)):
        answer, _ = asked(proxy.https(client), "/metrics", X_Forwarded_For=forged)
        assert answer.status == status, f"/metrics for {client}, which says that it is {forged}"

    logged = proxy.logged()
    assert request_id in logged, "the same id in both logs"
    assert "/healthz" in logged
    assert "secret" not in logged


@pytest.mark.full
def test_large_bodies_are_for_the_addresses_that_take_files(proxy: nginx.Proxy) -> None:
    text = nginx.TEMPLATE.read_text()
    locations = re.findall(r"location = (\S+) \{\s+client_max_body_size (\d+)m;", text)
    limits = {address: int(limit) * MIB for address, limit in locations}
    ours = {bodies.reverse(name): limit for name, limit in bodies.upload_limits().items()}
    assert limits.keys() == ours.keys()
    assert sent(proxy, "/login/", 2 * MIB) == (413, False), "nginx says no"
    for address, limit in ours.items():
        assert limit <= limits[address] < limit + 2 * MIB
        assert sent(proxy, address, limit) == (413, True), "Kiln does: there is no ticket"
        assert sent(proxy, address, limits[address] + 1) == (413, False)


def test_nobody_outside_says_what_is_traced(tmp_path: Path) -> None:
    if lacking := nginx.lacking():
        pytest.skip(lacking)
    came: list[set[str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append({name.lower() for name in self.headers})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with nginx.before(tmp_path / "nginx", f"127.0.0.1:{server.server_port}") as made:
            answer, _ = asked(made.https(), "/", traceparent="00-1", tracestate="a=1", Accept="b")
        server.shutdown()
    assert answer.status == 204
    (names,) = came
    assert "accept" in names
    assert not names & {"traceparent", "tracestate"}
