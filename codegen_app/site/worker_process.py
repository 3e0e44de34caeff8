"""The threads that run beside the tasks in each Celery worker; imported with the tasks."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from celery.worker import state

from codegen_app.platform.config.tracing import tracing
from codegen_app.site.periodic import PeriodicThread
from codegen_app.site.queued_work import has_work
from codegen_app.tracking.notifying.dispatcher import Dispatcher
from codegen_app.workers.heartbeat import WorkerHeartbeat
from codegen_app.workers.liveness import Progress


@worker_init.connect  # type: ignore[untyped-decorator]
def _start_traces(**_: Any) -> None:
    tracing.start("kiln-worker")


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _end_traces(**_: Any) -> None:
    tracing.end()


@worker_ready.connect  # type: ignore[untyped-decorator]
def _start_threads(sender: Any, **_: Any) -> None:
    """Register the worker, which takes messages now, and start the periodic round."""

    def progress() -> Progress:
        return Progress(state.all_total_count[0], bool(state.active_requests))

    names = [queue.name for queue in sender.task_consumer.queues]
    heartbeat = WorkerHeartbeat(sender.hostname, names, progress, has_work)
    periodic, dispatcher = PeriodicThread(), Dispatcher()
    heartbeat.start()
    periodic.start()
    dispatcher.start()

    @worker_shutting_down.connect(weak=False)  # type: ignore[untyped-decorator]
    def _stop_threads(**_: Any) -> None:
        dispatcher.stop()
        periodic.stop()
        heartbeat.stop()
