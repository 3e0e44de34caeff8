"""Hostile values in every parameter of every address and in every field of every form."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.support.hostile import TEXTS

COUNT, SEED = "KILN_ATTACK_COUNT", "KILN_ATTACK_SEED"
# Every parameter that some page or form reads, and two that none does.
NAMES = (
    *("build", "node", "sizes", "loop", "waiting", "of", "filter", "start", "q", "show", "times"),
    *("view", "x", "colour", "shown", "kernel", "target", "graph", "selection", "run", "next"),
    *("state", "page", "p", "o", "all", "username", "password", "csrfmiddlewaretoken", "why"),
    *("budget", "compiles", "measurements", "priority", "strategy", "flags", "name", "file"),
    *("try", "decides", "problem", "path", "position", "owner", "person"),
    *("action", "_selected_action", "ticket", "unknown", "un\x00known"),
)


def readings(addresses: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """GET of each address with each value in each parameter, alone and repeated."""
    for address in addresses:
        for name in NAMES:
            for value in TEXTS:
                yield "get", address, {name: value}
            yield "get", address, {name: list(TEXTS[:4])}


def writings(addresses: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """POST to each address with each value in all fields, and in each field alone."""
    for address in addresses:
        for value in TEXTS:
            yield "post", address, dict.fromkeys(NAMES, value)
            for name in NAMES:
                yield "post", address, {name: value}


def paths(addresses: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each part of each path replaced."""
    for address in addresses:
        parts = address.split("/")
        for place in range(1, len(parts)):
            for value in TEXTS:
                yield "get", "/".join((*parts[:place], value[:2000], *parts[place + 1 :])), {}


def failed(client: Client, requests: list[tuple[str, str, dict[str, Any]]]) -> Counter[str]:
    """How many of them ended as an error of ours, by what was asked."""
    client.raise_request_exception = False
    found: Counter[str] = Counter()
    for method, address, data in requests:
        try:
            status = getattr(client, method)(_sendable(address), _plain(data)).status_code
        except UnicodeEncodeError:  # what no client can send
            continue
        if status >= 500:
            found[f"{method} {ascii(address)[:80]} {_named(data)}: {status}"] += 1
    return found


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """As bytes that a client can send: lone surrogates as somebody hostile encodes them."""
    return {_sendable(name): _each(value) for name, value in data.items()}


def _each(value: Any) -> Any:
    return [_sendable(one) for one in value] if isinstance(value, list) else _sendable(value)


def _sendable(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _named(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}={ascii(value)[:40]}" for name, value in list(data.items())[:2])


def main() -> int:
    """0 where nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10**9, help="of each kind (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ[COUNT], os.environ[SEED] = str(options.count), str(options.seed)
    # The suite's short version with more of them: it has a database, rows and people.
    return int(pytest.main(["-q", "-s", "-p", "no:logging", "tests/app/web/test_parameters.py"]))


if __name__ == "__main__":
    sys.exit(main())
