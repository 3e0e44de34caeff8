"""A webhook goes where it may, over the checked address, once, and within its time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address, ip_network
from queue import Empty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen_app.tracking.notifying import addresses, webhook
from codegen_app.tracking.notifying.attempt import Attempt, Outcome
from scheduler.errors import UserError
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.receivers import Answer, HttpReceiver, http_receiver

LOOPBACK = [ip_network("127.0.0.0/8")]


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


def post(receiver: HttpReceiver, *answers: Answer, within_s: float = PATIENCE_S) -> Attempt:
    receiver.answers = list(answers)
    return webhook.post(receiver.url, b"{}", {"Kiln-Event": "raised"}, LOOPBACK, within_s)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "file:///etc/passwd",
        "gopher://a.example/",
        "//a.example/",
        "https://",
        "https:///path",
        "https://user:password@a.example/",
        "https://user@a.example/",
        "http://a.example\\@127.0.0.1/",
        "http://a.example/\r\nHost: b",
        "http://a.example/ b",
        "http://a.example:0/",
        "http://a.example:99999/",
        "http://[::1/",
        "http://exämple/",
        "https://a.example/" + "a" * 2000,
    ],
)
def test_what_is_no_address_of_a_web_server_is_turned_down(url: str) -> None:
    with pytest.raises(UserError) as error:
        addresses.parse(url)
    assert "\n" not in str(error.value)


def test_an_address_has_a_port_and_a_target() -> None:
    assert addresses.parse("https://A.example?q=1#part") == addresses.Address(
        "https", "a.example", 443, "/?q=1"
    )
    assert addresses.parse("http://[2606:4700::1111]:8080/a").port == 8080


OWN = [
    *("127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "192.0.0.8"),
    *("198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fd12::1", "fec0::1", "ff02::1"),
    *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::10.0.0.1", "2002:0a00:0001::1", "::10.0.0.1", "2001:0:53aa:64c::f5ff:fffe"),
    *("168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "192.88.99.1"),
    *("3fff::1", "3fff:fff:ffff::1", "5f00::1", "2001:db8::1", "::ffff:0:10.0.0.1"),
    *("fe80::1%eth0", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
]


@given(
    st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16"]),
    st.integers(0, 2**16 - 1),
)
def test_an_own_address_is_not_reached_in_any_form_of_ipv6(network: str, host: int) -> None:
    """Mapped, translated (NAT64, RFC 8215, SIIT), compatible, 6to4, Teredo."""
    own = int(ip_network(network).network_address) + host
    forms = {
        "mapped": (0xFFFF << 32) + own,
        "siit": (0xFFFF << 48) + own,
        "nat64": (0x64FF9B << 96) + own,
        "rfc8215": (0x64FF9B0001 << 80) + own,
        "compatible": own,
        "6to4": (0x2002 << 112) + (own << 80) + 1,
        "teredo": (0x20010000 << 96) + (own ^ 0xFFFFFFFF),
    }
    for form, number in forms.items():
        assert not addresses.is_allowed(IPv6Address(number), []), (form, IPv6Address(number))


@pytest.mark.parametrize("address", OWN)
def test_no_address_of_an_own_network_is_reached(address: str) -> None:
    assert not addresses.is_allowed(ip_address(address), [])


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
)
def test_public_addresses_are_reached(address: str) -> None:
    assert addresses.is_allowed(ip_address(address), [])


def test_the_operator_allows_networks_one_by_one() -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd12::/16")]
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd12::1"):
        assert addresses.is_allowed(ip_address(address), allowed)
    for address in ("10.2.0.1", "127.0.0.1", "fd13::1"):
        assert not addresses.is_allowed(ip_address(address), allowed)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "0"],
)
def test_the_own_machine_is_not_reached_however_it_is_written(
    host: str, receiver: HttpReceiver
) -> None:
    port = addresses.parse(receiver.url).port
    attempt = webhook.post(f"http://{host}:{port}/", b"{}", {}, [])
    assert attempt.outcome is Outcome.PERMANENT
    assert "KILN_WEBHOOK_NETWORKS" in attempt.error
    with pytest.raises(Empty):
        receiver.next(within_s=0)


def named(*found: str) -> object:
    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        return [(None, None, 0, "", (one, port)) for one in found]

    return getaddrinfo


def test_one_address_of_the_own_network_among_public_ones_is_enough_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", named("8.8.8.8", "10.0.0.1"))
    attempt = webhook.post("http://two.example/", b"{}", {}, [])
    assert attempt.outcome is Outcome.PERMANENT
    assert "two.example resolves to 10.0.0.1" in attempt.error


def test_the_connection_is_made_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch, receiver: HttpReceiver
) -> None:
    """A name that is another one by the second time it is asked leads nowhere else."""
    port = addresses.parse(receiver.url).port
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def once(host: str, *args: object, **kwargs: object) -> object:
        if host == "changing.example":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "192.0.2.1"
        return resolve(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", once)
    attempt = webhook.post(f"http://changing.example:{port}/hook", b"{}", {}, LOOPBACK)
    assert (attempt.outcome, asked) == (Outcome.THROUGH, ["changing.example"])
    assert receiver.next().headers["host"] == f"changing.example:{port}"


def test_what_was_sent_arrives_as_it_is(receiver: HttpReceiver) -> None:
    assert post(receiver) == Attempt(Outcome.THROUGH, status=204)
    request = receiver.next()
    assert (request.method, request.path, request.body) == ("POST", "/hook", b"{}")
    assert request.headers["kiln-event"] == "raised"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver: HttpReceiver, status: int) -> None:
    attempt = post(receiver, Answer(status, {"Location": f"{receiver.url}/other"}))
    assert attempt == Attempt(
        Outcome.PERMANENT, f"HTTP {status}: redirects are not followed", status
    )
    receiver.next()
    with pytest.raises(Empty):
        receiver.next(within_s=0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
def test_what_the_receiver_does_not_take_is_not_tried_again(
    receiver: HttpReceiver, status: int
) -> None:
    assert post(receiver, Answer(status)).outcome is Outcome.PERMANENT


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_receiver_in_trouble_is_tried_again(receiver: HttpReceiver, status: int) -> None:
    attempt = post(receiver, Answer(status, {"Retry-After": "120"}))
    assert attempt == Attempt(Outcome.TEMPORARY, f"HTTP {status}", status, 120)


def test_retry_after_may_be_a_moment(receiver: HttpReceiver) -> None:
    late = Answer(503, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"})
    assert post(receiver, late).retry_after_s > 1e9
    for past in ("Wed, 21 Oct 2015 07:28:00 GMT", "soon", "-5", "²"):
        assert post(receiver, Answer(503, {"Retry-After": past})).retry_after_s == 0


def test_an_answer_of_any_size_is_read_in_part(receiver: HttpReceiver) -> None:
    assert post(receiver, Answer(200, body=b"a" * 5_000_000)).outcome is Outcome.THROUGH


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 2000 ok\r\n\r\n",
        b"HTTP/1.1 200 ok\r\nA: " + b"a" * 99_999,
    ],
)
def test_who_speaks_no_http_is_a_temporary_failure(receiver: HttpReceiver, raw: bytes) -> None:
    attempt = post(receiver, Answer(raw=raw))
    assert attempt.outcome is Outcome.TEMPORARY
    assert "did not answer with HTTP" in attempt.error


def test_who_says_nothing_is_left_after_a_while(receiver: HttpReceiver) -> None:
    attempt = post(receiver, Answer(silent=True), within_s=0.2)
    assert attempt == Attempt(Outcome.TEMPORARY, "no response within 0.2 s")


def test_an_answer_that_drips_is_left_after_a_while(receiver: HttpReceiver) -> None:
    """Each byte comes within the limit of a read; all of them together do not."""
    attempt = post(receiver, Answer(raw=b"HTTP/1.1 200 ok\r\nA: ", dripping=True), within_s=0.3)
    assert attempt == Attempt(Outcome.TEMPORARY, "no response within 0.3 s")


def test_nobody_is_there() -> None:
    attempt = webhook.post(f"http://127.0.0.1:{free_port()}/", b"{}", {}, LOOPBACK)
    assert attempt.outcome is Outcome.TEMPORARY
    assert "no connection to 127.0.0.1" in attempt.error


def test_a_name_that_nobody_has_is_a_temporary_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    attempt = webhook.post("https://nobody.example/", b"{}", {}, [])
    assert attempt == Attempt(
        Outcome.TEMPORARY, "cannot resolve nobody.example: Name or service not known"
    )


def test_https_is_not_believed_without_a_certificate(receiver: HttpReceiver) -> None:
    url = receiver.url.replace("http:", "https:")
    attempt = webhook.post(url, b"{}", {}, LOOPBACK)
    assert attempt.outcome is Outcome.TEMPORARY
    assert "HTTPS with 127.0.0.1 failed" in attempt.error
