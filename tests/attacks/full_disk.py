"""All work on a disk that is full: ``python -m tests.attacks.full_disk --rounds 10``.

Everything that is written (artifacts, code cache, temporary files, cases) lies on a tmpfs of its
own, whose free space changes at random between nothing and enough, and which is read-only for a
while. Models are imported, compiled and timed on it. Then there is room, and everything has to
complete: no row rejected or put aside, every artifact and cache entry whole, nothing half-written.
Needs root, to mount. Exits with 1 where anything got through, with 2 where it cannot mount.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from codegen_app.platform import postgres

SIZE_MIB = 256
MODELS = Path(__file__).parent / "graphs"
_DATABASE = "kiln_full_disk"
_LIMIT_S = 600


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Disk:
    """A small file system, of which a file takes as much as is asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._ballast = place / "ballast"

    @property
    def free(self) -> int:
        """Bytes."""
        return shutil.disk_usage(self.place).free

    def leave(self, free: int) -> None:
        """Leave so many bytes free, as far as there are that many beside what is in use."""
        missing = self.free - free
        size = self._ballast.stat().st_size if self._ballast.exists() else 0
        with self._ballast.open("ab") as file:
            file.truncate(max(0, size + min(missing, 0)))
            with suppress(OSError):
                if missing > 0:
                    os.posix_fallocate(file.fileno(), size, missing)

    def read_only(self, on: bool) -> None:
        """Mount it so, or so that it can be written again."""
        how = "remount,ro" if on else "remount,rw"
        done = subprocess.run(["mount", "-o", how, str(self.place)], check=False)
        if done.returncode:
            say(f"it could not be mounted {how}: something is being written")


@contextmanager
def small_disk() -> Iterator[Disk]:
    """Mounted in a folder of its own, and gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="kiln-full-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "kiln", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        place.rmdir()
        say("no file system can be mounted here: run this as root")
        sys.exit(2)
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


@contextmanager
def database() -> Iterator[str]:
    """On the tests' server, which lies elsewhere."""
    from tests.conftest import CLUSTER, OPTIONS, _in_use

    with _in_use():
        postgres.start(CLUSTER, OPTIONS)
        yield from _made(CLUSTER)


def _made(cluster: postgres.Cluster) -> Iterator[str]:
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {_DATABASE}")
    try:
        yield cluster.url(_DATABASE)
    finally:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")


class Attack:
    """Django is set up by now, with everything on the disk."""

    def __init__(self, disk: Disk, rounds: int, seed: int) -> None:
        self._disk = disk
        self._rounds = rounds
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def run(self) -> list[str]:
        """What got through, one line each."""
        models = [model for model in sorted(MODELS.glob("*.pt2")) if _can_be_prepared(model)]
        for number in range(self._rounds):
            self._import(models[number % len(models)])
            with self._disturbed(read_only=number % 5 == 4):
                self._import(models[(number + 1) % len(models)])
                self._work()
        self._disk.leave(self._disk.free + SIZE_MIB * 2**20)
        for model in models[: self._rounds]:
            self._import(model)
        deadline = time.monotonic() + _LIMIT_S
        while self._is_open() and time.monotonic() < deadline:
            self._pauses_are_over()
            self._work()
        return [*self._rows(), *self._files()]

    @contextmanager
    def _disturbed(self, *, read_only: bool) -> Iterator[None]:
        """Meanwhile the disk is read-only, or fills up and empties at random."""
        self._disk.leave(0)
        over = threading.Event()

        def change() -> None:
            while not over.wait(self._random.uniform(0.2, 3.0)):
                free = self._random.choice((0, 0, 4e3, 6e4, 1e6, 1e7, 1e8, 2e8))
                self._disk.leave(int(free * self._random.random()))
                self.counts["changes of the free space"] += 1

        thread = threading.Thread(target=change)
        if read_only:
            self._disk.read_only(True)
            self.counts["rounds on a read-only disk"] += 1
        else:
            thread.start()
            self.counts["rounds on a full disk"] += 1
        try:
            yield
        finally:
            over.set()
            if thread.ident is not None:
                thread.join()
            self._disk.read_only(False)
            self._disk.leave(2**27)  # what can be done between two rounds is done

    def _import(self, model: Path) -> None:
        from codegen_app.graphs.services import imports as graphs
        from codegen_app.tuning.services import run_requests
        from codegen_app.workers import faults

        try:
            graph, is_new = graphs.import_graph(model, model.stem, ["cpu"], None)
        except Exception as error:
            if faults.fault_of(error) is None:
                raise
            self.counts["imports that were told to try again"] += 1
            return
        if is_new:
            least = {name: info["min"] for name, info in graph.symbols.items()}
            run_requests.start_run(graph, "cpu", "cpu", least, None, candidate_limit=2)
            self.counts["imports"] += 1

    def _work(self) -> None:
        """A pass of all workers."""
        from codegen_app import tasks
        from codegen_app.workers import faults

        for task in (tasks.prepare, tasks.compile, lambda: tasks.measure("cpu")):
            try:
                task()
            except Exception as error:
                if faults.fault_of(error) is None:
                    raise
                self.counts["passes that the machine ended"] += 1
        self._pauses_are_over()

    def _pauses_are_over(self) -> None:
        from codegen_app.workers import work

        for model in work.work_models():
            waiting = model._default_manager.filter(again_at__isnull=False)
            for reason in waiting.values_list("reason", flat=True):
                what = reason.partition("; tried again")[0].replace(str(self._disk.place), "DISK")
                self.counts[f"{model._meta.verbose_name} put off: {what[:110]}"] += 1
            waiting.update(again_at=None)

    @staticmethod
    def _is_open() -> bool:
        from codegen_app.graphs.models import Graph
        from codegen_app.kernels.models import Build
        from codegen_app.tuning.models import TuningRun
        from codegen_app.workers.models import OPEN_STATES

        return any(
            model._default_manager.filter(state__in=OPEN_STATES).exists()
            for model in (Graph, Build, TuningRun)
        )

    def _rows(self) -> Iterator[str]:
        from codegen_app.graphs.models import Graph
        from codegen_app.kernels.models import Build
        from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun
        from codegen_app.workers import work
        from codegen_app.workers.models import State

        for model in (*work.work_models(), TuningRun):
            rows = model._default_manager.all()
            self.counts[f"{model._meta.verbose_name}s done"] = rows.filter(state=State.DONE).count()
            for row in rows.exclude(state=State.DONE):
                yield f"{model._meta.verbose_name} {row.pk} is {row.state}: {row.reason}"
        tried = Candidate.objects.filter(kernel__isnull=False)
        for row in tried.exclude(state=State.DONE):
            yield f"candidate {row.pk} is {row.state}: {row.reason}"
        results = BenchmarkResult.objects.count()
        self.counts["results"] = results
        if results != tried.count():
            yield f"{results} results of {tried.count()} candidates"
        if not (Graph.objects.exists() and Build.objects.exists() and results):
            yield "nothing was done"

    def _files(self) -> Iterator[str]:
        from codegen_app.platform import artifacts
        from codegen_app.platform.models import Artifact
        from codegen_app.workers import compilers

        root = self._disk.place
        for artifact in Artifact.objects.all():
            self.counts["artifacts"] += 1
            if not artifacts.is_whole(artifact):
                yield f"artifact {artifact.path} is damaged"
        cache = compilers.code_cache()
        for entry in (cache.root / "builds").glob("*/*"):
            self.counts["entries of the code cache"] += 1
            if cache.get(entry.name) is None:
                yield f"{entry} is damaged"
        for left in (cache.root / "tmp", root / "tmp"):
            yield from (f"{path} was left behind" for path in left.glob("*"))
        yield from (f"{path} was left behind" for path in root.rglob("*.part"))


def _can_be_prepared(model: Path) -> bool:
    from scheduler import pipeline
    from scheduler.errors import UserError

    try:
        pipeline.schedule(pipeline.lower(pipeline.load(model)))
    except UserError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with small_disk() as disk, database() as url:
        (disk.place / "tmp").mkdir()
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
            "DATABASE_URL": url,
            "KILN_VAR": str(disk.place / "var"),
            "TMPDIR": str(disk.place / "tmp"),
            "KILN_LOG_LEVEL": "ERROR",
        }
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        attack = Attack(disk, options.rounds, options.seed)
        try:
            through = attack.run()
        finally:
            disk.read_only(False)
            connections.close_all()
    for what, count in sorted(attack.counts.items()):
        say(f"{count:6} {what}")
    for line in through:
        say(f"GOT THROUGH: {line}")
    say(f"{len(through)} got through")
    sys.exit(1 if through else 0)


if __name__ == "__main__":
    main()
