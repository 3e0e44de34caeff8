"""Slow clients of every kind hold on to the web server while others ask for pages.

Readers come once the slow ones' answers have begun: making 8 MiB for each of them is work that was
asked for before, whose time is printed by itself; what is tried is who only holds on.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.support.web_server import SLOW, answer, holding, served


def main() -> int:
    """0 where every reader got an answer within the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=100, help="slow clients of each kind")
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for an answer")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = stack.enter_context(served(Path(folder)))
        held = [stack.enter_context(holding(place, options.each, begun)) for begun in SLOW.values()]
        began = time.monotonic()
        answers = sum(
            _begun(one)
            for (begun, ones) in zip(SLOW.values(), held, strict=True)
            for one in ones
            if begun.endswith(b"\r\n\r\n")
        )
        print(f"{answers} answers of 8 MiB were begun after {time.monotonic() - began:.1f} s")
        times = [_answered(place) for _ in range(options.readers)]
    late = sum(seconds > options.limit for seconds in times)
    print(f"{options.each * len(SLOW)} slow connections of {len(SLOW)} kinds")
    print(f"{len(times)} readers: {late} waited longer than {options.limit:g} s, ", end="")
    print(f"at most {1000 * max(times):.0f} ms")
    return 1 if late else 0


def _begun(one: socket.socket) -> bool:
    """Whether the first byte of an answer comes; it is left unread."""
    try:
        return bool(one.recv(1, socket.MSG_PEEK))
    except OSError:  # it made room for others
        return False


def _answered(place: Path) -> float:
    """Seconds until a whole answer; endless without one."""
    began = time.monotonic()
    try:
        assert answer(place).status == 200
    except OSError:
        return float("inf")
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
