"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that is free now."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """All of them held at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
