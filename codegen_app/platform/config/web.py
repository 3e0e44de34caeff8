"""gunicorn's settings for the pages: its configuration ``python:codegen_app.platform.config.web``.

An installation overrides them on the command line (workers, bind).
"""

from __future__ import annotations

import gc
import os

from codegen_app.platform.config import env
from codegen_app.platform.config.tracing import tracing

# Before numpy is loaded: the pages' matrices are small, and requests share the cores. With a thread
# per core, the importance of 2,000 trials' parameters took twice as long, and longer on busy cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

wsgi_app = "codegen_app.platform.config.wsgi"
worker_class = "codegen_app.web.server.worker.WaitressWorker"
preload_app = True
# The number of new objects before the young generation is collected: Python's default is 700. A
# batch of points creates 200,000 and keeps them until it is stored; repeated collections were a
# sixth of the time to read it.
_YOUNG_OBJECTS = 50_000
if env.choice("KILN_LOG_FORMAT", env.LOG_FORMATS) == "json":
    logger_class = "codegen_app.web.server.log.JsonLogger"
threads = 8  # requests that a process answers at once; slow connections take none
worker_connections = 400  # of a process; beyond, connections that wait for their clients are closed
graceful_timeout = 10  # seconds for running requests when a process is to end


def when_ready(_server: object) -> None:
    """Freeze loaded objects before forking: they stay permanently, and full collections skip them.
    Those were a fifth of the time of a comparison of thousands of series, and each wrote to memory
    that the processes share."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 10)


def post_fork(_server: object, _worker: object) -> None:
    """Start tracing in each process: a fork does not have its thread."""
    tracing.start("kiln-web")


def worker_exit(_server: object, _worker: object) -> None:
    """Send the last traces."""
    tracing.end()
