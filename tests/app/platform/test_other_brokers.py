"""Redis and RabbitMQ as the broker: real ones, killed while workers wait for messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from kombu import Connection, Producer

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.platform import readiness
from codegen_app.platform.config.celery import app
from codegen_app.workers import queue
from codegen_app.workers.models import State, Worker
from tests.app.workers.test_real_workers import Workers
from tests.support import rabbitmq, redis_server
from tests.support.exported import pointwise, softmax, write
from tests.support.patience import PATIENCE_S
from tests.support.probes import wait_for_probes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
Server = rabbitmq.RabbitMQ | redis_server.RedisServer


@pytest.fixture(params=["redis", "rabbitmq"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    module = {"redis": redis_server, "rabbitmq": rabbitmq}[request.param]
    if lacking := module.lacking():
        pytest.skip(lacking)
    folder = tmp_path / "broker"
    made: Server
    if request.param == "redis":
        made = redis_server.RedisServer(folder)
    else:
        made = rabbitmq.RabbitMQ(folder)
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture
def workers(server: Server, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(tmp_path, server.url, KILN_MODEL="0")
    yield made
    made.kill()


@pytest.fixture
def sending(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Connection]:
    """This process sends to the server, too, as one that serves pages does."""

    def connection(**_: Any) -> Connection:
        return Connection(server.url, transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS)

    @contextmanager
    def producer(given: Producer | None = None) -> Iterator[Producer]:
        if given is not None:
            yield given
            return
        with connection() as made:
            yield Producer(made)

    monkeypatch.setattr(app, "producer_or_acquire", producer)
    monkeypatch.setattr(app, "connection_for_write", connection)
    return connection


def _waiting(connection: Connection, name: str) -> int:
    """Messages in a queue that is there."""
    with connection:
        answer = connection.default_channel.queue_declare(name, passive=True)
    return int(answer.message_count)


def test_work_goes_on_when_the_broker_was_killed_and_is_back(
    server: Server,
    workers: Workers,
    sending: Callable[[], Connection],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait_for_probes(monkeypatch)
    for _ in range(3):  # rounds in which nobody takes anything
        queue.notify(queue.Kind.COMPILE, 2)
        queue.notify(queue.Kind.MEASURE, target="gfx942")
    assert _waiting(sending(), "compile") == 2, "no more than there are to wake"
    assert _waiting(sending(), "measure.gfx942") == 1
    with Connection(server.url, heartbeat=app.conf.broker_heartbeat) as connection:
        connection.connect()
        assert connection.get_heartbeat_interval() == 0, "RabbitMQ would drop who is long at work"

    workers.start_one("prepare")
    first, _ = graphs.import_graph(write(tmp_path / "1.pt2", pointwise()), "first", [], None)
    done = Graph.objects.filter(state=State.DONE)
    workers.wait(done.filter(pk=first.pk).exists, "graph prepared")
    assert Worker.objects.get().queues == ["prepare"]

    workers.wait(server.has_all_acknowledged, "acknowledgement")
    server.kill()
    assert _broker() == "does not answer"
    with caplog.at_level(logging.WARNING, "codegen_app.workers.queue"):
        second, _ = graphs.import_graph(write(tmp_path / "2.pt2", softmax()), "second", [], None)
    assert "workers are told by the next round" in caplog.text
    server.start()
    assert _broker() == "ok"
    workers.wait(done.filter(pk=second.pk).exists, "second graph prepared")


def _broker() -> str:
    """What the probe says now, not what it said a moment ago."""
    return (
        readiness.Check("broker", readiness.check_broker, "does not answer")
        .begin()
        .result(PATIENCE_S)
    )
