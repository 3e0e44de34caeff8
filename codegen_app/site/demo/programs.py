"""The demo's programs: web server, compiling workers, a measuring one, and one that detects changes
and notifies people."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from codegen_app.site.demo.processes import Program
from codegen_app.tuning.services.ledger import MODELLED
from codegen_app.workers.queue import Kind, queue_name
from scheduler.cpu_count import usable_cpus

_MAX_COMPILERS = 8  # each takes about 150 MB


def programs(var: Path, host: str, port: int, measured: str) -> tuple[Program, ...]:
    """Return the programs in starting order; pages come first.

    A worker is one process that does one thing at a time. Kernels are compiled on all cores; one
    worker measures, since a device has one user at a time; one tracks, independently of both.
    """
    compiling = f"{queue_name(Kind.PREPARE)},{queue_name(Kind.COMPILE)}"
    measuring = ",".join(queue_name(Kind.MEASURE, target) for target in (measured, MODELLED))
    count = min(usable_cpus(), _MAX_COMPILERS)
    return (
        Program(
            "web",
            (
                *(sys.executable, "-m", "gunicorn"),
                *("--config", "python:codegen_app.platform.config.web"),
                *("--bind", f"{host}:{port}", "--workers", "2"),
                *("--worker-tmp-dir", str(var), "--access-logfile", "-"),
            ),
        ),
        *(_worker(f"compile-{number}", compiling) for number in range(1, count + 1)),
        _worker("measure", measuring),
        _worker("track", f"{queue_name(Kind.DETECT)},{queue_name(Kind.NOTIFY)}"),
    )


def worker_name(program: Program) -> str:
    """Return the name in a worker program's heartbeats; "" for a program without heartbeats."""
    prefix, _, name = program.name.partition("worker-")
    return "" if prefix else f"{name}@{socket.gethostname()}"


def _worker(name: str, queues: str) -> Program:
    """Return a worker. Its gossip is disabled: who works on what is in the rows."""
    return Program(
        f"worker-{name}",
        (
            *(sys.executable, "-m", "celery"),
            *("--app", "codegen_app.platform.config.celery", "worker"),
            *("--hostname", f"{name}@{socket.gethostname()}", "--queues", queues),
            *("--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
    )
