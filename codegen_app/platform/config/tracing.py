"""OpenTelemetry traces, sent as OTLP over HTTP (ADR 0036).

``KILN_TRACES=otlp`` enables them; OpenTelemetry's own variables set their destination and sampling
(``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_SERVICE_NAME``, ``OTEL_TRACES_SAMPLER`` …). Disabled, none
of its packages is imported, and a span costs nothing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import env

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Attributes = Mapping[str, str | int | float | bool]
_NAME = "codegen_app"


def is_on(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether traces are sent; raises ``ImproperlyConfigured`` without the packages."""
    if env.choice("KILN_TRACES", ("off", "otlp"), environ) == "off":
        return False
    try:
        import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError:
        raise ImproperlyConfigured(
            "KILN_TRACES=otlp needs the extra: pip install 'kiln[otel]'"
        ) from None
    return True


class Tracing:
    """The traces of one process; at first nothing is sent."""

    def __init__(self) -> None:
        self._tracer: Any = None
        self._provider: Any = None

    def start(self, service: str) -> None:
        """Start a thread that sends traces if they are enabled: call it after forking. ``service``
        is its name unless ``OTEL_SERVICE_NAME`` is set."""
        if not is_on():
            return
        # From the extra: imported only if traces are enabled.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        os.environ.setdefault("OTEL_SERVICE_NAME", service)
        instance_id = f"{socket.gethostname()}:{os.getpid()}"
        provider = TracerProvider(resource=Resource.create({"service.instance.id": instance_id}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._provider, self._tracer = provider, provider.get_tracer(_NAME)

    def end(self) -> None:
        """Send the rest, and nothing more."""
        if self._provider is not None:
            self._provider.shutdown()
        self._provider = self._tracer = None

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes,
        kind: str = "INTERNAL",
        caller: Mapping[str, str] | None = None,
    ) -> Iterator[Span | None]:
        """Open a span for the body; None if nothing is sent. ``caller``: the headers of a request
        whose ``traceparent`` it belongs to."""
        if self._tracer is None:
            yield None
            return
        from opentelemetry import propagate, trace  # noqa: PLC0415 - of the extra

        with self._tracer.start_as_current_span(
            name,
            context=propagate.extract(caller) if caller is not None else None,
            kind=trace.SpanKind[kind],
            attributes=attributes,
        ) as span:
            yield span

    def failed(self, reason: str) -> None:
        """Mark the open span as failed, although no exception leaves it."""
        if self._tracer is not None:
            from opentelemetry import trace  # noqa: PLC0415 - of the extra

            trace.get_current_span().set_status(trace.StatusCode.ERROR, reason)

    def ids(self) -> dict[str, str]:
        """Return ``trace_id`` and ``span_id`` of the open span, for the log; {} without one."""
        if self._tracer is None:
            return {}
        from opentelemetry import trace  # noqa: PLC0415 - of the extra

        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


#: The instance of this process.
tracing = Tracing()
