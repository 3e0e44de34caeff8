"""The web server: whoever is slow, or holds on, or sends too much, others get their answers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.test import RequestFactory
from waitress.adjustments import Adjustments

from codegen_app.web.server import bodies
from codegen_app.web.server.connections import BODY_BYTES_PER_S, BODY_S, HEADERS_S, Parser
from tests.support.web_server import SLOW, answer, connected, holding, served


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.mark.parametrize("begun", SLOW.values(), ids=SLOW)
def test_fifty_slow_connections_keep_nobody_waiting(begun: bytes, place: Path) -> None:
    with holding(place, 50, begun):
        assert answer(place).status == 200


def test_a_part_of_a_file_is_sent_from_the_file(place: Path) -> None:
    with connected(place) as one:
        one.sendall(b"GET /part HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = http.client.HTTPResponse(one)
        said.begin()
        assert said.read() == (bytes(range(256)) * 4096)[300:1_000_000]
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        after = http.client.HTTPResponse(one)
        after.begin()
        assert after.read() == b"0 bytes", "nothing more came of it"


def test_connections_beyond_the_limit_make_room(tmp_path: Path) -> None:
    with served(tmp_path, worker_connections=16) as few, holding(few, 40, b"GET /"):
        assert answer(few).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 3221225472\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + (b"40000\r\n" + bytes(0x40000) + b"\r\n") * 5,
    ],
    ids=["by its length", "while it arrives"],
)
@pytest.mark.parametrize("path", ["/", "/import", "/selections/import", "/import?ticket=a"])
def test_a_body_that_its_address_does_not_take_is_refused_before_it_is_there(
    path: str, sent: bytes, place: Path
) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode()
    assert answer(place, head + sent).status == 413


LARGE = 8 << 20
BODIES = {
    "by its length": (f"Content-Length: {LARGE}\r\n\r\n".encode(), bytes(LARGE)),
    "chunked": (
        b"Transfer-Encoding: chunked\r\n\r\n",
        (b"40000\r\n" + bytes(0x40000) + b"\r\n") * (LARGE // 0x40000) + b"0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(
    ("head", "content_type"),
    [
        ("POST /login/ HTTP/1.1\r\nAccept: text/html,*/*;q=0.8", "text/html; charset=utf-8"),
        ("POST /api/v1/results HTTP/1.1\r\nAccept: */*", "application/json"),
        ("POST /import HTTP/1.1\r\nAccept: application/json", "application/json"),
    ],
)
def test_who_sends_too_much_can_read_why(
    head: str, content_type: str, kind: str, place: Path
) -> None:
    """Also a client that sends all of its body before it reads."""
    headers, body = BODIES[kind]
    with connected(place) as one:
        one.sendall(f"{head}\r\nHost: localhost\r\n".encode() + headers + body)
        said = http.client.HTTPResponse(one)
        said.begin()
        text = said.read().decode()
    assert (said.status, said.headers["Content-Type"]) == (413, content_type)
    assert f"This address accepts at most {bodies.DEFAULT_LIMIT} bytes." in text
    if "json" in content_type:
        assert "error" in json.loads(text)
    else:
        assert "<h1>Request too large</h1>" in text


def test_what_cannot_be_parsed_is_answered_as_the_address_is(place: Path) -> None:
    bad = b"Host: localhost\r\nContent-Length: x\r\n\r\n"
    with connected(place) as one:
        one.sendall(b"POST /api/v1/results HTTP/1.1\r\n" + bad)
        said = http.client.HTTPResponse(one)
        said.begin()
        assert said.status == 400
        assert json.loads(said.read())["error"] == "Request rejected"


def multipart(content: bytes, name: str = "m.onnx") -> bytes:
    return (
        b'--b\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\nx\r\n--b\r\n'
        b'Content-Disposition: form-data; name="file"; filename="' + name.encode() + b'"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + content
    )


ONNX = b"\x08\x08\x12\x07pytorch" + bytes(64 * 1024)


@pytest.mark.parametrize("length", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
def test_a_file_is_refused_by_its_first_bytes(length: str, place: Path) -> None:
    body = multipart(ONNX)
    if "chunked" in length:
        body = f"{len(body):x}\r\n".encode() + body
    head = (
        f"POST /import HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n{length}\r\n\r\n"
    )
    with connected(place) as one:
        one.sendall(head.encode() + body)  # the rest is never sent
        said = http.client.HTTPResponse(one)
        said.begin()
        assert said.status == 415
        assert "m.onnx: this is an ONNX model." in said.read().decode()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/", ONNX),
        ("/import", b"PK\x03\x04" + bytes(64 * 1024)),
        ("/import", b"{" * (64 * 1024)),
        ("/import", b"\x1f\x8b" + bytes(64 * 1024)),
        ("/import", b"\x7fELF\x02\x01" + bytes(12) + b"\xe0\0" + bytes(64 * 1024)),
    ],
)
def test_what_may_be_imported_is_read_to_its_end(path: str, content: bytes) -> None:
    parser = Parser(Adjustments())
    body = multipart(content)
    parser.received(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body) + 9}\r\n\r\n".encode())
    parser.received(body)
    assert parser.error is None
    parser.received(b"\r\n--b--\r\n")
    assert parser.completed
    assert parser.body_rcv.getbuf().get(-1).startswith(b"--b\r\n")


def test_small_bodies_arrive_whole(place: Path) -> None:
    for head in (b"Content-Length: 5\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"):
        with connected(place) as one:
            one.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + head)
            one.sendall(b"cde\r\n0\r\n\r\n" if b"chunked" in head else b"cde")
            said = b"".join(iter(lambda one=one: one.recv(4096), b""))
        assert said.endswith(b"5 bytes")


def test_connections_have_a_time_for_each_part() -> None:
    """Headers, a body as long as it goes on arriving, silence; none while we make an answer."""
    parser = Parser(Adjustments())
    parser.received(b"POST / HTTP/1.1\r\nContent-Le")
    assert not parser.is_late(parser.began + HEADERS_S - 1)
    assert parser.is_late(parser.began + HEADERS_S + 1)
    parser.received(b"ngth: 1000000\r\n\r\n")
    assert not parser.is_late(parser.began + BODY_S - 1)
    assert parser.is_late(parser.began + BODY_S + 1)
    parser.received(bytes(500_000))
    assert not parser.is_late(parser.began + BODY_S + 1)
    assert parser.is_late(parser.began + BODY_S + 500_000 / BODY_BYTES_PER_S + 1)


def test_a_ticket_is_of_one_session_and_one_address(rf: RequestFactory) -> None:
    request = rf.get("/import")
    request.session = SimpleNamespace(session_key="abc")
    path, _, query = bodies.ticket_url(request, "import").partition("?")
    mine = "csrftoken=x; sessionid=abc"
    assert bodies.max_body_bytes(path, query, mine) > settings.GRAPH_FILE_MAX_BYTES
    for other in (
        (path, query, "sessionid=abd"),
        (path, query, ""),
        (path, query, "sessionid"),
        (path, "", mine),
        (path, query + "x", mine),
        (path, "ticket=" + "a:" * 2000, mine),
        (path, "&" * 2000, mine),
        ("/selections/import", query, mine),
        ("/retune", query, mine),
    ):
        assert bodies.max_body_bytes(*other) == bodies.DEFAULT_LIMIT, other
