"""A web server of two threads around ``plain_site``, and clients that are slow on purpose."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
OURS = "codegen_app.web.server.worker.WaitressWorker"
SETTINGS = {"DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings"}
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
SLOW = {
    "nothing sent": b"",
    "half a request's line": b"GET /gra",
    "headers that never end": REQUEST + b"X-Slow: ",
    "a body that does not come": REQUEST + b"Content-Length: 1000\r\n\r\nabc",
    "a chunk that does not come": REQUEST + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\nabc",
    "a large answer that nobody reads": b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a file that nobody reads": b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@contextmanager
def served(
    folder: Path, worker: str = OURS, threads: int = 2, worker_connections: int = 200
) -> Iterator[Path]:
    """The socket on which a process serves while the block runs."""
    place = folder / "web.sock"
    command = (
        *(sys.executable, "-m", "gunicorn", "tests.support.plain_site:application"),
        *("--bind", f"unix:{place}", "--worker-class", worker, "--threads", str(threads)),
        *("--worker-connections", str(worker_connections), "--graceful-timeout", "1"),
    )
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, env=os.environ | SETTINGS
    ) as process:
        assert process.stderr is not None
        try:
            said = b"".join(iter_until(b"Booting worker", process.stderr))
            assert place.exists(), said.decode()
            yield place
        finally:
            process.terminate()


def iter_until(found: bytes, lines: IO[bytes]) -> Iterator[bytes]:
    """The lines up to the one in which this stands."""
    for line in lines:
        yield line
        if found in line:
            return


def connected(place: Path) -> socket.socket:
    """A connection; one that waits for two minutes has been kept waiting."""
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(PATIENCE_S)
    one.connect(str(place))
    return one


@contextmanager
def holding(place: Path, count: int, begun: bytes) -> Iterator[list[socket.socket]]:
    """Connections that each sent the beginning of a request, and no more."""
    with ExitStack() as open_ones:
        made = [open_ones.enter_context(connected(place)) for _ in range(count)]
        for one in made:
            one.sendall(begun)
        yield made


def answer(place: Path, request: bytes = REQUEST + b"\r\n") -> http.client.HTTPResponse:
    """What is said to a request on a connection of its own; ``TimeoutError`` without an answer."""
    with connected(place) as one:
        with suppress(BrokenPipeError):  # it may answer before all of it was sent
            one.sendall(request)
        said = http.client.HTTPResponse(one)
        said.begin()
        return said
