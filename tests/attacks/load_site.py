"""A site with a real model's kernels, served as the demo serves, in a folder of its own.

python -m tests.attacks.load_site fill N       (with the site's environment)
python -m tests.attacks.load_site write        writes as a busy worker does, until it is ended
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import psycopg

from codegen_app.kernels.services import preparation
from codegen_app.platform import postgres

ROOT = Path(__file__).resolve().parents[2]
COMPILED = 6  # kernels whose builds are real; the others' rows have copies of theirs
KERNELS = 240
WRITES_A_SECOND = 20


@dataclass(frozen=True)
class Site:
    """Where it serves, and its process."""

    host: str
    port: int
    web: subprocess.Popen[bytes]
    environment: dict[str, str]
    pages: dict[str, list[str]]
    cookies: list[str]


@contextmanager
def served(folder: Path, graph: str, accounts: int) -> Iterator[Site]:
    """The site, filled and answering; ended afterwards."""
    cluster = postgres.cluster_for(folder, "load")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
        "DATABASE_URL": cluster.url("kiln"),
        "KILN_VAR": str(folder),
        "KILN_SECRET_KEY": secrets.token_urlsafe(50),
        "KILN_READ_NEEDS_LOGIN": "1" if accounts else "0",
        "KILN_LOG_LEVEL": "WARNING",
    }
    postgres.start(cluster)
    try:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE kiln")
        for command in ("migrate", "collectstatic --no-input"):
            manage = [sys.executable, "manage.py", *command.split(), "--verbosity=0"]
            subprocess.run(manage, cwd=ROOT, env=environment, check=True)
        port = _free_port()
        fill = [sys.executable, "-m", __spec__.name, "fill", graph, str(accounts), str(port)]
        filled = subprocess.run(
            fill, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        found = json.loads(filled.stdout.splitlines()[-1])
        with _web(folder, port, found["command"], environment) as web:
            yield Site("127.0.0.1", port, web, environment, found["pages"], found["cookies"])
    finally:
        postgres.stop(cluster)
        postgres.remove(folder)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _web(
    folder: Path, port: int, command: list[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        (folder / "web.log").open("wb") as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log) as web,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/login/", web)
            yield web
        finally:
            web.terminate()


def _wait(url: str, web: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert web.poll() is None, "the web server does not stay up"
        try:
            with closing(urlopen(url)):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(url)


@contextmanager
def writing(site: Site) -> Iterator[None]:
    """A worker's writes meanwhile."""
    command = [sys.executable, "-m", __spec__.name, "write"]
    with subprocess.Popen(command, cwd=ROOT, env=site.environment) as writer:
        try:
            yield
        finally:
            writer.terminate()


def fill(graph_name: str, accounts: int, port: int) -> dict[str, object]:
    """Import and schedule a sample model; its kernels' builds and measurements are rows."""
    from codegen_app.graphs.models import Graph, TemplateNode
    from codegen_app.graphs.services import imports as graphs
    from codegen_app.kernels.models import Build, GeneratedKernel
    from codegen_app.kernels.services import builds
    from codegen_app.site.demo.programs import programs
    from codegen_app.tuning.models import TuningRun
    from codegen_app.tuning.services import run_requests
    from codegen_app.workers import work
    from scheduler import samples
    from tests.support.pages_world import make_graph

    path = samples.path(graph_name)
    graph, _ = graphs.import_graph(path, graph_name, graphs.DEFAULT_TARGETS, None)
    run_requests.start_run(graph, "cpu", "cpu", {}, None, candidate_limit=2)
    claimed = work.claim_next(Graph.objects.all(), "load")
    assert claimed is not None
    preparation.prepare(claimed)
    for _ in range(COMPILED):
        build = work.claim_next(builds.local_builds(), "load")
        assert build is not None
        builds.run_build(build)
    _copy_kernels()
    _copy_builds()
    for n in range(30):
        make_graph(f"model {n}", layers=2)
    names = GeneratedKernel.objects.order_by("name").values_list("name", flat=True)
    pages = {
        "overview": ["/"],
        "graphs": ["/graphs"],
        "kernels": ["/kernels", "/kernels?filter=gemm", "/kernels?start=100"],
        "runs": ["/runs"],
        "selections": ["/selections"],
        "kernel": [f"/kernels/{name}" for name in names],
        "node": [node.get_absolute_url() for node in TemplateNode.objects.filter(graph=graph)],
        "graph": [graph.get_absolute_url()],
        "run": [run.get_absolute_url() for run in TuningRun.objects.all()],
    }
    assert Build.objects.filter(state="done").count() >= KERNELS
    web = programs(Path(os.environ["KILN_VAR"]), "127.0.0.1", port, "cpu")[0]
    return {"pages": pages, "cookies": _accounts(accounts), "command": list(web.command)}


def _copy_kernels() -> None:
    """``KERNELS`` in all: copies under other names, for the same nodes."""
    from django.db.models import Max

    from codegen_app.kernels.models import GeneratedKernel, KernelUse

    made = list(GeneratedKernel.objects.order_by("pk"))
    last = KernelUse.objects.aggregate(last=Max("position"))["last"] or 0
    for at in range(len(made), KERNELS):
        kernel = made[at % len(made)]
        uses = list(KernelUse.objects.filter(kernel=kernel.pk)[:4])
        digest = hashlib.sha256(f"copy {at}".encode()).hexdigest()
        name = f"{kernel.name.rpartition('_')[0]}_{digest[:8]}"
        copied = {f.attname: getattr(kernel, f.attname) for f in kernel._meta.concrete_fields}
        copied |= {"id": None, "name": name, "source_digest": digest}
        copied["source"] = kernel.source.replace(kernel.name, name)
        copy = GeneratedKernel.objects.create(**copied)
        for use in uses:
            use.pk, use.kernel, use.is_default, use.position = None, copy, False, last + at
            use.save(force_insert=True)


def _copy_builds() -> None:
    """Builds of every kernel, as those that were made, and a measurement of each."""
    from codegen_app.graphs.models import Problem
    from codegen_app.kernels.models import Build, GeneratedKernel
    from codegen_app.tuning.models import BenchmarkResult, Environment

    made = list(Build.objects.filter(state="done"))
    assert made
    copied = {f.attname for f in Build._meta.concrete_fields} - {"id", "kernel_id", "target"}
    rows, waiting = [], Build.objects.exclude(state="done")
    Build.objects.exclude(state="done").filter(candidates__isnull=True).delete()
    for at, one in enumerate(waiting):
        for name in copied - {"flags", "toolchain_digest"}:
            setattr(one, name, getattr(made[at % len(made)], name))
        one.save()
    for at, kernel in enumerate(GeneratedKernel.objects.filter(builds__isnull=True)):
        for one in {build.target: build for build in made[at % len(made) :] + made}.values():
            fields = {name: getattr(one, name) for name in copied}
            rows.append(Build(**fields, kernel_id=kernel.pk, target=one.target))
    Build.objects.bulk_create(rows)
    environment = Environment.objects.create(
        digest="0" * 64,
        device="cpu",
        device_name="CPU emulation",
        target="cpu",
        compiler="bundled",
        compute_units=2,
        memory_bytes=2**34,
        emulated=True,
    )
    problem = Problem.objects.order_by("pk").first()
    BenchmarkResult.objects.bulk_create(
        BenchmarkResult(
            kernel_id=build.kernel_id,
            build=build,
            problem=problem,
            environment=environment,
            bindings={},
            samples_ns=[1e5] * 20,
            batch=1,
            median_ns=1e5,
            low_ns=9e4,
            high_ns=2e5,
            check_max_error=1e-6,
            check_bound=1e-5,
            check_ratio=0.1,
            emulated=True,
        )
        for build in Build.objects.filter(state="done")
    )


def _accounts(count: int) -> list[str]:
    """The cookies of so many logged-in accounts; of nobody where there are none."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    cookies = []
    for n in range(count):
        client = Client()
        client.force_login(User.objects.create_user(f"reader{n}"))
        value = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookies.append(f"{settings.SESSION_COOKIE_NAME}={value}")
    return cookies or [""]


def write() -> None:
    """What a measuring and a compiling worker write: states, heartbeats, results."""
    from django.db.models import F
    from django.utils import timezone

    from codegen_app.kernels.models import Build
    from codegen_app.tuning.models import BenchmarkResult, Candidate

    builds = list(Build.objects.values_list("pk", flat=True))
    sample = BenchmarkResult.objects.order_by("pk").first()
    assert sample is not None
    at = 0
    while True:  # a build is worked on for a second, and measured at its end
        at += 1
        build = builds[at // WRITES_A_SECOND % len(builds)]
        Build.objects.filter(pk=build).update(heartbeat_at=timezone.now())
        Candidate.objects.filter(pk=at % 100).update(position=F("position"))
        if at % WRITES_A_SECOND == 0:
            Build.objects.filter(pk=build).update(finished_at=timezone.now())
            sample.pk, sample.build_id = None, build
            sample.kernel_id = Build.objects.get(pk=build).kernel_id
            sample.save(force_insert=True)
        time.sleep(1 / WRITES_A_SECOND)


def main() -> None:
    """One of the two commands."""
    import django

    django.setup()
    if sys.argv[1] == "fill":
        sys.stdout.write(f"{json.dumps(fill(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))}\n")
    else:
        write()


if __name__ == "__main__":
    main()
