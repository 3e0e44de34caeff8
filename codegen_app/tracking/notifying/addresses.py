"""Where webhooks may go: their parsed addresses, and the allowed hosts behind them.

A name is resolved once, every address is checked, and the connection is made to a checked address,
so that a name that changes between check and request leads nowhere else.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from scheduler.errors import UserError

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network
MAX_LENGTH = 2000
_PORTS = {"http": 80, "https": 443}
_NAT64 = ip_network("64:ff9b::/96")
# Networks that ``is_global`` counts as public, in whole or in part, or in some versions of Python:
# protocols between routers, Azure's host agent (its metadata and DNS), AS112's and relays' anycast,
# documentation (RFC 9637), segment routing (RFC 9602), and IPv4 addresses written as IPv6 (RFC
# 4291: compatible, translated), in any network.
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            *("192.0.0.0/24", "192.88.99.0/24", "192.31.196.0/24", "192.52.193.0/24"),
            *("192.175.48.0/24", "168.63.129.16/32"),
            *("3fff::/20", "5f00::/16", "2001::/23", "2001:db8::/32", "100::/32"),
            *("64:ff9b:1::/48", "2620:4f:8000::/48", "::/96", "::ffff:0:0:0/96"),
        ),
    )
)


class NotAllowedError(Exception):
    """The address is in a network that webhooks may not reach."""


@dataclass(frozen=True)
class Address:
    """A webhook's address; ``target`` is path and query, as in the request line."""

    scheme: str
    host: str
    port: int
    target: str


def parse(url: str) -> Address:
    """Return the parts of an ``http`` or ``https`` address; raises ``UserError``."""
    if len(url) > MAX_LENGTH:
        raise UserError(f"a URL has at most {MAX_LENGTH} characters")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise UserError("a URL must be ASCII without spaces or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"invalid URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise UserError("a URL must begin with https:// or http://")
    if not parts.hostname:
        raise UserError("the URL has no host")
    if parts.username is not None or parts.password is not None:
        raise UserError(
            "a URL must not contain a user name: the receiver checks the signature instead"
        )
    if port == 0:
        raise UserError("port 0 is invalid")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], target)


def resolve(host: str, port: int, allowed: Sequence[IpNetwork]) -> list[IpAddress]:
    """Return the host's addresses, all checked.

    Raises ``NotAllowedError`` if one may not be reached, ``OSError`` for an unknown name.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ip_address(row[4][0]) for row in found))
    for address in addresses:
        if not is_allowed(address, allowed):
            raise NotAllowedError(
                f"{host} resolves to {address}, which is not a public address: the operator can"
                " allow its network (KILN_WEBHOOK_NETWORKS)"
            )
    return addresses


def is_allowed(address: IpAddress, allowed: Sequence[IpNetwork]) -> bool:
    """Return whether webhooks may reach an address: a public one, or one in an allowed network."""
    reached: IpAddress = address
    if isinstance(address, IPv6Address):  # it may embed an IPv4 address
        nat64 = IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else None
        reached = nat64 or address.ipv4_mapped or address
    return _is_public(reached) or any(
        each in network for each in (address, reached) for network in allowed
    )


def _is_public(address: IpAddress) -> bool:
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address):  # tunnels end in any IPv4 network they name
        return not (address.is_site_local or address.sixtofour or address.teredo)
    return True
