"""Messages through the default broker while whoever carries them is killed.

    python -m tests.attacks.broker --messages 100000

Producers and consumers are processes of their own over kombu, as web and workers are. At random
moments one of them, or the server process behind one of their connections, gets SIGKILL (which
makes PostgreSQL start all others anew, too). Each producer writes down what it has sent, each
consumer what it has received before it acknowledges it. A message that arrives twice after a kill
is allowed; one that never arrives, or a process that ends by anything but our signal, is not.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from codegen_app.platform import postgres

ROOT = Path(__file__).resolve().parents[2]
QUEUE = "attack"
STALL_S = 120.0
_AT_ONCE = 2  # are killed whether anything moves or not
OUR_SIGNALS = {0, -signal.SIGKILL, -signal.SIGTERM}


@dataclass
class Report:
    """What was counted."""

    sent: int = 0
    received: int = 0
    doubled: int = 0
    lost: int = 0
    crashes: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    table_before: int = 0
    table_peak: int = 0
    table_after: int = 0
    rows_left: int = 0

    def lines(self) -> Iterator[str]:
        kills = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        yield f"{self.sent} sent, {self.received} received, {self.doubled} doubled"
        yield f"{self.lost} lost, {self.crashes} crashes, {self.rows_left} rows left"
        yield f"killed: {kills or 'nothing'}; {self.seconds:.0f} s"
        yield (
            f"table: {self.table_before} bytes before, {self.table_peak} at most,"
            f" {self.table_after} after VACUUM; the broker writes no files"
        )

    @property
    def holds(self) -> bool:
        return self.sent > 0 and not (self.lost or self.crashes or self.rows_left)


@dataclass
class Attack:
    """Keeps the processes running, and kills them."""

    url: str
    folder: Path
    environment: Mapping[str, str]
    share: int
    producers: int
    consumers: int
    pause_s: float
    kill_backend: Callable[[psycopg.Connection[Any], int], None]
    random: random.Random
    report: Report = field(default_factory=Report)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self) -> Report:
        began = time.monotonic()
        self.report.table_before = self._table_size()
        try:
            self._drive()
        finally:
            for process in self._running.values():
                process.terminate()
            for name, process in self._running.items():
                self._ended(name, process.wait())
        self.report.seconds = time.monotonic() - began
        self._count()
        return self.report

    def _drive(self) -> None:
        names = [f"producer-{n}" for n in range(self.producers)]
        names += [f"consumer-{n}" for n in range(self.consumers)]
        progress, since = 0, time.monotonic()
        while not self._is_over():
            for name in names:
                self._keep_up(name)
            time.sleep(self.random.expovariate(1 / self.pause_s))
            written = sum(file.stat().st_size for file in self.folder.glob("*.numbers"))
            # Once the first are gone whoever starts has the time to: on a machine that does much
            # else, all would be killed again before they had a message.
            if written != progress or self.report.kills.total() < _AT_ONCE:
                self._strike()
            if written != progress:
                progress, since = written, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                say(f"nothing has moved for {STALL_S:g} s")
                return

    def _keep_up(self, name: str) -> None:
        process = self._running.get(name)
        if process is not None:
            status = process.poll()
            if status is None or (status == 0 and name.startswith("producer")):
                return
            self._ended(name, status)
        command = (sys.executable, "-m", "tests.attacks.broker", "--as", name)
        command += ("--share", str(self.share), "--folder", str(self.folder))
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def _ended(self, name: str, status: int) -> None:
        if status not in OUR_SIGNALS:
            self.report.crashes += 1
            log = (self.folder / f"{name}.log").read_text(errors="replace")
            say(f"{name} ended with {status}:\n{log[-600:]}")

    def _strike(self) -> None:
        what = self.random.choices(("consumer", "producer", "backend"), (5, 3, 2))[0]
        if what == "backend":
            self._strike_backend()
            return
        alive = [
            process
            for name, process in self._running.items()
            if name.startswith(what) and process.poll() is None
        ]
        if alive:
            self.random.choice(alive).kill()
            self.report.kills[what] += 1

    def _strike_backend(self) -> None:
        with suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as connection:
            self.report.table_peak = max(self.report.table_peak, table_size(connection))
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE application_name = 'kiln messages' AND datname = current_database()"
            ).fetchall()
            if rows:
                self.report.kills["backend"] += 1
                self.kill_backend(connection, self.random.choice(rows)[0])

    def _is_over(self) -> bool:
        """All is sent, and nothing is left in the table."""
        for number in range(self.producers):
            process = self._running.get(f"producer-{number}")
            if process is None or process.poll() != 0:
                return False
        try:
            with psycopg.connect(self.url) as connection:
                row = connection.execute(
                    "SELECT count(*) FROM codegen_app_message WHERE queue = %s", [QUEUE]
                ).fetchone()
        except psycopg.Error:
            return False
        return row is not None and row[0] == 0

    def _table_size(self) -> int:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM codegen_app_message")
            return table_size(connection)

    def _count(self) -> None:
        sent, received = Counter[int](), Counter[int]()
        for file in self.folder.glob("producer-*.numbers"):
            sent.update(map(int, file.read_text().split()))
        for file in self.folder.glob("consumer-*.numbers"):
            received.update(map(int, file.read_text().split()))
        self.report.sent = len(sent)
        self.report.received = received.total()
        self.report.doubled = received.total() - len(received)
        self.report.lost = len(sent.keys() - received.keys())
        self.report.table_after = self._table_size()
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT count(*) FROM codegen_app_message").fetchone()
            self.report.rows_left = int(row[0]) if row else -1


def table_size(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_total_relation_size('codegen_app_message')").fetchone()
    return int(row[0]) if row else 0


def killed(_: psycopg.Connection[Any], pid: int) -> None:
    """The server's process dies, and all of them are started anew."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def disconnected(connection: psycopg.Connection[Any], pid: int) -> None:
    """The connection is closed by the server: for a server that others use, too."""
    connection.execute("SELECT pg_terminate_backend(%s)", [pid])


def produce(name: str, folder: Path, share: int) -> None:
    """Send this producer's numbers, beginning after the last that was written down."""
    from kombu import Connection, Producer

    first = int(name.rpartition("-")[2]) * share
    with (folder / f"{name}.numbers").open("ab", buffering=0) as sent:
        done = len((folder / f"{name}.numbers").read_text().split())
        with Connection(broker()) as connection:
            connection.ensure_connection(interval_start=0.05, interval_max=0.5)
            producer = Producer(connection)
            policy = {"interval_start": 0.05, "interval_max": 0.5, "max_retries": None}
            for number in range(first + done, first + share):
                producer.publish(
                    {"number": number}, routing_key=QUEUE, retry=True, retry_policy=policy
                )
                sent.write(b"%d\n" % number)


def consume(name: str, folder: Path) -> None:
    """Write down what comes, until killed."""
    from kombu import Connection, Queue
    from kombu.mixins import ConsumerMixin

    class Consumer(ConsumerMixin):  # type: ignore[misc]
        def __init__(self, connection: Any, received: Any) -> None:
            self.connection, self._received = connection, received
            self.connect_max_retries = None

        def get_consumers(self, make: Any, _: Any) -> list[Any]:
            queue = Queue(QUEUE, exchange="", routing_key=QUEUE)
            return [make([queue], callbacks=[self.note], prefetch_count=1)]

        def note(self, body: dict[str, int], message: Any) -> None:
            self._received.write(b"%d\n" % body["number"])
            message.ack()

    with (folder / f"{name}.numbers").open("ab", buffering=0) as received:
        Consumer(Connection(broker()), received).run()


def broker() -> str:
    from codegen_app.platform.broker import transport

    transport.register()
    return f"{transport.SCHEME}://localhost"


@contextmanager
def own_server(folder: Path) -> Iterator[str]:
    """A database of the attack's own, with the application's tables: its URL."""
    cluster = postgres.cluster_for(folder)
    postgres.start(cluster)
    try:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE kiln")
        url = cluster.url("kiln")
        subprocess.run(
            (sys.executable, "manage.py", "migrate", "--verbosity=0"),
            cwd=ROOT,
            env=environment_for(url, folder),
            check=True,
        )
        yield url
    finally:
        postgres.remove(folder)


def environment_for(url: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
        "DATABASE_URL": url,
        "KILN_VAR": str(folder),
    }


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--consumers", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--as", dest="name", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.name is not None:
        if options.name.startswith("producer"):
            produce(options.name, options.folder, options.share)
        else:
            consume(options.name, options.folder)
        return
    folder = Path(tempfile.mkdtemp(prefix="kiln-messages-"))
    try:
        with own_server(folder) as url:
            report = Attack(
                url=url,
                folder=folder,
                environment=environment_for(url, folder),
                share=-(-options.messages // options.producers),
                producers=options.producers,
                consumers=options.consumers,
                pause_s=options.pause,
                kill_backend=killed,
                random=random.Random(options.seed),
            ).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for line in report.lines():
        say(line)
    sys.exit(0 if report.holds else 1)


if __name__ == "__main__":
    main()
