"""The queue: its tasks, and the threads that run beside them in each worker."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings

from codegen_app.broker import transport
from codegen_app.config.startup import exit_with_one_line
from codegen_app.config.tracing import tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.config.settings")
# Django's checks import all pages: they run where a site is set up, not in each worker.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
with exit_with_one_line():
    _ = settings.VAR_DIR

transport.register()
app = Celery("kiln")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["codegen_app"])


@worker_init.connect  # type: ignore[untyped-decorator]
def _start_traces(**_: Any) -> None:
    tracing.start("kiln-worker")


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _end_traces(**_: Any) -> None:
    tracing.end()


@worker_ready.connect  # type: ignore[untyped-decorator]
def _start_threads(sender: Any, **_: Any) -> None:
    """Register the worker, which takes messages now, and start the periodic round."""
    # Django is set up now.
    from celery.worker import state  # noqa: PLC0415

    from codegen_app.services.liveness import Progress  # noqa: PLC0415
    from codegen_app.services.notifying.dispatcher import Dispatcher  # noqa: PLC0415
    from codegen_app.services.periodic import PeriodicThread  # noqa: PLC0415
    from codegen_app.services.workers import WorkerHeartbeat  # noqa: PLC0415

    def progress() -> Progress:
        return Progress(state.all_total_count[0], bool(state.active_requests))

    names = [queue.name for queue in sender.task_consumer.queues]
    heartbeat = WorkerHeartbeat(sender.hostname, names, progress)
    rounds, courier = PeriodicThread(), Dispatcher()
    heartbeat.start()
    rounds.start()
    courier.start()

    @worker_shutting_down.connect(weak=False)  # type: ignore[untyped-decorator]
    def _stop_threads(**_: Any) -> None:
        courier.stop()
        rounds.stop()
        heartbeat.stop()
