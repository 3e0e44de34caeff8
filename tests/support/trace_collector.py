"""Where traces go in a test: an OTLP receiver over HTTP on this machine, with the real messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LIMIT_S = 60


@dataclass(frozen=True)
class Span:
    """A span as it came; ids are in hex, "" for none."""

    name: str
    service: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool


class Collector:
    """What came, in its order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._came: Queue[Span] = Queue()
        self.spans: list[Span] = []

    def take(self, body: bytes) -> None:
        message = ExportTraceServiceRequest.FromString(body)
        for resource in message.resource_spans:
            service = _values(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                for one in scope.spans:
                    self._came.put(_span(one, service))

    def wait(self, is_it: Callable[[Span], bool]) -> Span:
        """The first that came or comes of which this is true; ``queue.Empty`` after a minute."""
        while True:
            if found := next(filter(is_it, self.spans), None):
                return found
            self.spans.append(self._came.get(timeout=LIMIT_S))


def _span(one: Any, service: str) -> Span:
    return Span(
        *(one.name, service, one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex()),
        attributes=_values(one.attributes),
        is_error=one.status.code == one.status.STATUS_CODE_ERROR,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def collecting() -> Iterator[Collector]:
    """One that listens while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collector.take(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing: the test says what is wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
