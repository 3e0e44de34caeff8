"""KILN_TRACES=otlp: what requests, queries and workers did, as a collector gets it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.platform.config import tracing
from codegen_app.workers.models import State
from tests.app.processes import ROOT, worker_environment
from tests.app.workers.test_real_workers import Workers
from tests.support.exported import gemm, write
from tests.support.trace_collector import Collector, collecting
from tests.support.web_server import answer, iter_until

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
NOBODY = "http://127.0.0.1:1"


def sending(url: str, **others: str) -> dict[str, str]:
    """To a collector, ten times a second."""
    return {
        "KILN_TRACES": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        **others,
    }


@contextmanager
def web(folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The socket of the pages as an installation serves them; they end as they are asked to."""
    place = folder / "web.sock"
    command = (
        *(sys.executable, "-m", "gunicorn", "--config", "python:codegen_app.platform.config.web"),
        *("--bind", f"unix:{place}", "--workers", "1", "--graceful-timeout", "60"),
    )
    everybody = {"KILN_READ_NEEDS_LOGIN": "0"}  # pages as JSON need no static files
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env=worker_environment(folder, "") | everybody | environment,
    )
    with process:
        assert process.stderr is not None
        try:
            said = b"".join(iter_until(b"Booting worker", process.stderr))
            assert place.exists(), said.decode()
            yield place
        finally:
            process.terminate()
            process.stderr.read()  # what nobody takes fails its end
    assert process.returncode == 0


def asked(path: str, parent: str = "") -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "X-Request-ID: request-4711"]
    lines += [f"traceparent: 00-{parent}-00f067aa0ba902b7-01"] if parent else []
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.mark.full
def test_a_request_is_a_span_with_its_queries(
    transactional_db: None, tmp_path: Path, collector: Collector
) -> None:
    with web(tmp_path, sending(collector.url)) as place:
        assert answer(place, asked("/healthz")).status == 200
        assert answer(place, asked("/kernels/a_name.json?key=hunter2", parent=CALLER)).status == 404
        assert answer(place, asked("/kernels.json?key=hunter2")).status == 200
        page = collector.wait(lambda one: one.name == "GET /kernels.json")
    assert page.service == "kiln-web"
    assert page.attributes["http.response.status_code"] == 200
    assert page.attributes["url.path"] == "/kernels.json"
    assert page.attributes["kiln.request_id"] == "request-4711"
    queries = [one for one in collector.spans if one.parent == page.id]
    assert queries
    for query in queries:
        assert query.trace == page.trace
        assert query.attributes["db.query.text"].startswith(query.name)
    (missing,) = (one for one in collector.spans if one.name == "GET /kernels/<slug:name>.json")
    assert missing.trace != CALLER, "a stranger does not say what is traced"
    assert not missing.is_error, "that there is no such kernel is no failure of ours"
    assert all("healthz" not in one.name for one in collector.spans)
    assert "hunter2" not in str(collector.spans)
    assert "a_name" not in str([one.attributes.get("db.query.text") for one in collector.spans])


@pytest.mark.full
def test_a_trace_begins_at_our_own_proxy(
    transactional_db: None, tmp_path: Path, collector: Collector
) -> None:
    environment = sending(collector.url, KILN_TRUSTED_PROXIES="1", OTEL_SERVICE_NAME="lab")
    with web(tmp_path, environment) as place:
        assert answer(place, asked("/graphs.json", parent=CALLER)).status == 200
        page = collector.wait(lambda one: one.name == "GET /graphs.json")
    assert (page.trace, page.parent) == (CALLER, "00f067aa0ba902b7")
    assert page.service == "lab"


@pytest.mark.full
def test_what_a_worker_does_is_a_span_that_the_log_names(
    transactional_db: None, tmp_path: Path, collector: Collector
) -> None:
    workers = Workers(
        tmp_path, "database://localhost", **sending(collector.url), KILN_LOG_FORMAT="json"
    )
    graph, _ = graphs.import_graph(write(tmp_path / "linear.pt2", gemm()), "linear", [], None)
    workers.start_one("prepare")
    try:
        workers.wait(Graph.objects.filter(pk=graph.pk, state=State.DONE).exists, "graph")
        done = collector.wait(lambda one: one.name == "graph")
    finally:
        workers.kill()
    assert done.service == "kiln-worker"
    assert done.attributes["kiln.graph_id"] == graph.pk
    assert not done.is_error
    said = [json.loads(line) for line in (tmp_path / "worker.log").read_text().splitlines()]
    assert {one["trace_id"] for one in said if "graph_id" in one} <= {done.trace}


@pytest.mark.full
def test_nobody_who_collects_keeps_no_page_and_no_end_waiting(
    transactional_db: None, tmp_path: Path
) -> None:
    with web(tmp_path, sending(NOBODY)) as place:
        assert answer(place, asked("/graphs.json")).status == 200


def test_without_the_packages_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert not tracing.is_on({"KILN_TRACES": "off"})
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'kiln\[otel\]'"):
        tracing.is_on({"KILN_TRACES": "otlp"})


def test_off_nothing_of_the_packages_is_imported() -> None:
    asked = "import django; django.setup(); import sys; print('opentelemetry' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=ROOT,
        env=worker_environment(Path("/nowhere"), ""),
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.strip() == "False"
