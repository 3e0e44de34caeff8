"""gunicorn's worker with waitress's connections.

A request gets a thread once all of it has arrived, and frees it once the response is made:
waitress's single loop reads and writes, so that slow connections cost memory, never threads.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from codegen_app.web.server.connections import Server, UnixServer

_POLL_EVERY_S = 1.0


class WaitressWorker(Worker):  # type: ignore[misc]
    """Serves until gunicorn ends it; running requests are then finished."""

    def run(self) -> None:
        """Run the loop of this process."""
        dispatcher = ThreadedTaskDispatcher()
        dispatcher.queue_logger.setLevel("ERROR")  # waiting requests are no event
        dispatcher.set_thread_count(self.cfg.threads)
        connections: dict[int, Any] = {}
        servers = [
            self._server(listener.sock, dispatcher, connections) for listener in self.sockets
        ]
        while self.alive:
            self._turn(connections)
            if self.ppid != os.getppid():
                self.log.info("the parent ended, and so does %s", self)
                break
        for server in servers:
            server.stop_accepting()
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while time.monotonic() < deadline and any(server.is_busy() for server in servers):
            self._turn(connections)
        dispatcher.shutdown(timeout=0)

    def _turn(self, connections: dict[int, Any]) -> None:
        """Read and write what is ready; wait at most a second."""
        self.notify()
        wasyncore.loop(timeout=_POLL_EVERY_S, use_poll=True, map=connections, count=1)

    def _server(
        self, sock: socket.socket, dispatcher: ThreadedTaskDispatcher, connections: dict[int, Any]
    ) -> Server | UnixServer:
        settings = Adjustments(
            sockets=[sock],
            connection_limit=self.cfg.worker_connections,
            # A response waits here for its reader, not in a thread: beyond 1 MiB in a file.
            outbuf_high_watermark=1 << 30,
            max_request_header_size=64 * 1024,
            max_request_body_size=1 << 40,  # connections.py limits each URL
            cleanup_interval=_POLL_EVERY_S,
            clear_untrusted_proxy_headers=False,  # Django's settings decide what is trusted
            ident=None,
        )
        kind = UnixServer if sock.family == socket.AF_UNIX else Server
        return kind(
            self._logged(self.wsgi),
            connections,
            _sock=sock,
            dispatcher=dispatcher,
            adj=settings,
            sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()),
            bind_socket=False,
        )

    def _logged(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """Return the application with gunicorn's access log line for each request."""

        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            began = time.monotonic()
            response = SimpleNamespace(status="-", headers=(), sent=None)

            def start_recorded(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
                response.status, response.headers = status, headers
                response.sent = dict(headers).get("Content-Length")
                return start(status, headers, *rest)

            try:
                body: Iterable[bytes] = application(environ, start_recorded)
            finally:
                duration = timedelta(seconds=time.monotonic() - began)
                headers = [(k[5:], v) for k, v in environ.items() if k.startswith("HTTP_")]
                uri = environ.get("REQUEST_URI") or environ.get("PATH_INFO", "")
                request = SimpleNamespace(headers=headers)
                self.log.access(response, request, {**environ, "RAW_URI": uri}, duration)
            return body

        return answer
