"""The default broker: messages are rows, and none is lost, doubled for nothing, or deadly."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection as database
from kombu import Connection, Consumer, Producer, Queue

from codegen_app.platform.broker import transport
from codegen_app.platform.broker.session import Session
from codegen_app.platform.config.celery import app
from codegen_app.platform.models import Message
from codegen_app.workers import queue
from tests.app.processes import worker_environment
from tests.attacks import broker as attack
from tests.support.patience import PATIENCE_S

OPTIONS = settings.CELERY_BROKER_TRANSPORT_OPTIONS
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_messages(db: None) -> Iterator[None]:
    """They are committed by connections of the transport's own."""
    yield
    with psycopg.connect(**transport.parameters()) as connection:
        connection.execute("DELETE FROM codegen_app_message")


@pytest.fixture
def broker() -> Iterator[Connection]:
    transport.register()
    with Connection(f"{transport.SCHEME}://localhost") as made:
        yield made


def other() -> Connection:
    return Connection(f"{transport.SCHEME}://localhost")


def send(broker: Connection, *numbers: int, name: str = "q", **options: Any) -> None:
    producer = Producer(broker.default_channel)
    for number in numbers:
        producer.publish({"number": number}, routing_key=name, **options)


class Taker:
    """A consumer that keeps what comes, and acknowledges it when asked."""

    def __init__(self, broker: Connection, *names: str) -> None:
        self._broker = broker
        self.messages: list[Any] = []
        queues = [Queue(name, exchange="", routing_key=name) for name in names or ("q",)]
        consumer = Consumer(
            broker.default_channel, queues, on_message=self.messages.append, auto_declare=False
        )
        consumer.consume()

    def numbers(self, count: int, timeout: float = PATIENCE_S) -> list[int]:
        """What the next ``count`` messages say; they are acknowledged."""
        while len(self.messages) < count:
            self._broker.drain_events(timeout=timeout)
        taken, self.messages[:] = self.messages[:count], self.messages[count:]
        for message in taken:
            message.ack()
        return [message.payload["number"] for message in taken]


def test_messages_come_in_order_and_are_gone_once_acknowledged(broker: Connection) -> None:
    send(broker, 1, 2, 3)
    assert Message.objects.count() == 3
    assert Taker(broker).numbers(3) == [1, 2, 3]
    assert not Message.objects.exists()


def test_a_message_is_for_one(broker: Connection) -> None:
    send(broker, 1, 2)
    with other() as second:
        one, two = Taker(broker), Taker(second)
        assert one.numbers(1) + two.numbers(1) == [1, 2]
        with pytest.raises(TimeoutError):
            two.numbers(1, timeout=0.01)


def test_who_waits_is_woken(broker: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the next look of its own."""
    monkeypatch.setattr(transport, "LOOK_EVERY_S", 3600.0)
    taker, got = Taker(broker), list[int]()
    with pytest.raises(TimeoutError):
        taker.numbers(1, timeout=0.01)
    waiting = threading.Thread(target=lambda: got.extend(taker.numbers(1)))
    waiting.start()
    with other() as sender:
        send(sender, 7)
    waiting.join(PATIENCE_S)
    assert got == [7]


def test_what_a_killed_consumer_had_taken_is_given_to_another(
    broker: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LOOK_EVERY_S", 0.05)
    send(broker, 1)
    with other() as dying:
        taker = Taker(dying)
        dying.drain_events(timeout=PATIENCE_S)
        assert len(taker.messages) == 1
        survivor = Taker(broker)
        with pytest.raises(TimeoutError):
            survivor.numbers(1, timeout=0.2)  # it lives, and has it
        terminate(dying)
        assert survivor.numbers(1) == [1]


def test_who_takes_may_send_as_well(broker: Connection) -> None:
    taker = Taker(broker)
    send(broker, 1)
    assert taker.numbers(1) == [1]


def test_a_consumer_that_closes_gives_back_at_once(broker: Connection) -> None:
    send(broker, 1)
    with other() as closing:
        Taker(closing)
        closing.drain_events(timeout=PATIENCE_S)
    assert Message.objects.get().session is None
    assert Taker(broker).numbers(1) == [1]


def test_a_rejected_message_is_taken_again_or_dropped(broker: Connection) -> None:
    send(broker, 1)
    taker = Taker(broker)
    broker.drain_events(timeout=PATIENCE_S)
    taker.messages.pop().requeue()
    broker.drain_events(timeout=PATIENCE_S)
    taker.messages.pop().reject()
    assert not Message.objects.exists()


ENCODED = '{"body": %s, "properties": {"delivery_info": {}, "body_encoding": "base64"}}'


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "{}", "null", '{"properties": 3}', ENCODED % '"a"', ENCODED % 3],
)
def test_what_is_no_message_harms_nobody(broker: Connection, body: str) -> None:
    Session(transport.parameters()).put("q", body, None)
    send(broker, 1)
    assert Taker(broker).numbers(1) == [1]
    assert not Message.objects.exists()


def test_messages_that_nobody_took_in_time_are_gone(
    broker: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LOOK_EVERY_S", 0.0)
    send(broker, 1, name="nobody", expiration=0.001)
    send(broker, 2, name="nobody", expiration=600)
    assert json.loads(Message.objects.latest("pk").body)["properties"]["expiration"] == "600000"
    taker = Taker(broker)
    while Message.objects.count() == 2:
        with pytest.raises(TimeoutError):
            taker.numbers(1, timeout=0.001)
    assert Message.objects.count() == 1


def test_a_lost_connection_is_an_error_that_kombu_mends(broker: Connection) -> None:
    send(broker, 1)
    terminate(broker)
    producer = Producer(broker.default_channel)
    producer.publish({"number": 2}, routing_key="q", retry=True, retry_policy={"max_retries": 3})
    taker = Taker(broker)
    assert taker.numbers(2) == [1, 2]
    terminate(broker)
    with pytest.raises(broker.connection_errors):
        taker.numbers(1)


def terminate(broker: Connection) -> None:
    session = broker.transport.session
    pid = session._connection.info.backend_pid
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])


@pytest.fixture
def celery_on_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application sends over the default broker."""

    @contextmanager
    def producer(given: Producer | None = None) -> Iterator[Producer]:
        if given is not None:
            yield given
            return
        with Connection(transport.DEFAULT_URL, transport_options=OPTIONS) as connection:
            yield Producer(connection)

    monkeypatch.setattr(app, "producer_or_acquire", producer)


def test_an_hour_of_rounds_leaves_one_message_for_a_queue_nobody_serves(
    celery_on_the_database: None, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    for _ in range(20):
        with django_capture_on_commit_callbacks(execute=True):
            queue.notify(queue.Kind.MEASURE, target="gfx942")
            queue.notify(queue.Kind.COMPILE, 3)
    waiting = Message.objects.order_by("queue").values_list("queue", flat=True)
    assert list(waiting) == ["compile"] * 3 + ["measure.gfx942"]
    assert all(message.expires_at is not None for message in Message.objects.all())


def test_a_broker_that_is_away_is_no_failure_of_who_sends(
    celery_on_the_database: None,
    django_capture_on_commit_callbacks: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise psycopg.OperationalError("the server is away")

    monkeypatch.setattr(transport, "Session", away)
    with django_capture_on_commit_callbacks(execute=True):
        queue.notify(queue.Kind.COMPILE)
    assert "workers are told by the next round" in caplog.text


@pytest.mark.full
def test_nothing_is_lost_while_all_are_killed(tmp_path: Path) -> None:
    """The short version of ``python -m tests.attacks.broker``."""
    environment = worker_environment(tmp_path, "")
    report = attack.Attack(
        url=environment["DATABASE_URL"],
        folder=tmp_path,
        environment=environment,
        share=150,
        producers=1,
        consumers=2,
        pause_s=0.2,
        kill_backend=attack.disconnected,
        random=random.Random(4),
    ).run()
    assert report.holds, list(report.lines())
    assert report.sent == 150
    assert report.kills.total() >= 1
