"""gunicorn's settings for the pages, as its configuration ``python:codegen_app.config.web``.

What an installation wants otherwise it says on the command line (workers, bind).
"""

from __future__ import annotations

import gc
import os

from codegen_app.config import env
from codegen_app.config.tracing import tracing

# Before numpy is loaded: the pages' matrices are small, and requests share the cores. A thread for
# each core made the importance of 2,000 trials' parameters take twice as long, and more where the
# cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

wsgi_app = "codegen_app.config.wsgi"
worker_class = "codegen_app.server.worker.WaitressWorker"
preload_app = True
# Of objects that are made, before young ones are looked through: 700 is Python's. A batch of points
# makes 200,000 and keeps all of them until it is stored, and looking through them again and again
# was a sixth of reading it.
_YOUNG_OBJECTS = 50_000
if env.choice("KILN_LOG_FORMAT", env.LOG_FORMATS) == "json":
    logger_class = "codegen_app.server.log.JsonLogger"
threads = 8  # requests that a process answers at once; slow connections take none
worker_connections = 400  # of a process; beyond, those that wait for their clients make room
graceful_timeout = 10  # seconds for what was begun, when a process is to end


def when_ready(_server: object) -> None:
    """Before processes are made: what is loaded stays for good, and is not gone through again by
    each full collection of garbage. Those were a fifth of what a comparison of thousands of series
    takes, and each wrote to memory that the processes share."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 10)


def post_fork(_server: object, _worker: object) -> None:
    """In each process: what sends traces is a thread, which a fork does not have."""
    tracing.start("kiln-web")


def worker_exit(_server: object, _worker: object) -> None:
    """What was traced last is sent."""
    tracing.end()
