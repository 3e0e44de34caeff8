"""The programs of the demo: web server, compiling workers, and a measuring worker."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from codegen_app.demo.processes import Program
from codegen_app.services.queue import Kind, queue_name


def programs(var: Path, host: str, port: int, measured: str) -> tuple[Program, ...]:
    """In the order in which they are started; pages come first.

    Kernels are compiled on all cores; one process measures, since a device is for one at a time.
    """
    cores = os.cpu_count() or 1
    compiling = f"{queue_name(Kind.PREPARE)},{queue_name(Kind.COMPILE)},default"
    return (
        Program(
            "web",
            (
                *(sys.executable, "-m", "gunicorn", "codegen_app.config.wsgi"),
                *("--bind", f"{host}:{port}", "--workers", "1", "--threads", "8"),
                *("--worker-tmp-dir", str(var), "--access-logfile", "-", "--preload"),
            ),
        ),
        Program(
            "worker-compile",
            (
                *_celery("compile", compiling, cores),
                *("--beat", "--schedule", str(var / "beat-schedule")),
            ),
        ),
        Program(
            "worker-measure", _celery("measure", queue_name(Kind.MEASURE, measured), processes=1)
        ),
    )


def _celery(name: str, queues: str, processes: int) -> tuple[str, ...]:
    """A worker. Its gossip is of no use here: who works on what is in the rows."""
    return (
        *(sys.executable, "-m", "celery", "--app", "codegen_app.config.celery", "worker"),
        *("--hostname", f"{name}@%h", "--queues", queues, "--concurrency", str(processes)),
        *("--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"),
    )
