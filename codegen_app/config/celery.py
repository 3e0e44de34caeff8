"""The queue: which tasks there are, which queue each goes to, and what is done periodically."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init, worker_ready, worker_shutting_down
from django.conf import settings

from codegen_app.config import broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.config.settings")

app = Celery("kiln")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["codegen_app"])
app.conf.beat_schedule = {
    "look after the work": {
        "task": "codegen_app.tasks.look_after",
        "schedule": 5.0,
        # A worker that was away does not have to make up for every look it missed.
        "options": {"expires": 5.0},
    },
}


@worker_init.connect  # type: ignore[untyped-decorator]
@beat_init.connect  # type: ignore[untyped-decorator]
def make_queue_folders(**_: Any) -> None:
    """Before the first message is sent or looked for."""
    broker.make_folders(settings.CELERY_BROKER_TRANSPORT_OPTIONS)


@worker_ready.connect  # type: ignore[untyped-decorator]
def _start_heartbeat(sender: Any, **_: Any) -> None:
    """The worker takes messages now: register it, and look at once for what waits."""
    from codegen_app.services.workers import WorkerHeartbeat  # noqa: PLC0415 - Django is set up now

    names = [queue.name for queue in sender.task_consumer.queues]
    heartbeat = WorkerHeartbeat(sender.hostname, names)
    heartbeat.start()
    app.send_task("codegen_app.tasks.look_after")

    @worker_shutting_down.connect(weak=False)  # type: ignore[untyped-decorator]
    def _stop_heartbeat(**_: Any) -> None:
        heartbeat.stop()
