"""Kiln's processes on the benchmark's database, as ``make demo`` starts them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from codegen_app.site.demo.processes import Supervisor
from codegen_app.site.demo.programs import programs
from tests.benchmarks.tracking.server import ROOT, Place

_START_LIMIT_S = 60


@contextmanager
def serving(place: Place, *, workers: bool) -> Iterator[str]:
    """The web server as ``make demo`` starts it, with its workers where they are asked for."""
    place.manage("collectstatic", "--no-input", "--verbosity=0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    web, *others = programs(place.var, "127.0.0.1", port, "cpu")
    supervisor = Supervisor(ROOT, place.var / "log", place.environment())
    try:
        supervisor.start(web)
        _wait_until_it_hears(port)
        for program in others if workers else ():
            supervisor.start(program)
        yield f"http://127.0.0.1:{port}"
    finally:
        supervisor.stop()


def _wait_until_it_hears(port: int) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
