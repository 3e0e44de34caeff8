"""Messages to the workers. A message only says "look now": what there is to do is in the rows.

One that is lost delays the work until the next periodic look; one too many finds nothing to do.
"""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.db import transaction

from codegen_app.config.celery import app, make_queue_folders
from codegen_app.models import Build, Graph, State, TuningTask

# The periodic look says it again, so that a queue nobody serves does not fill up.
_STALE_AFTER_S = 30


class Kind(StrEnum):
    """Kinds of work, each with a task of its own."""

    PREPARE = "prepare"
    COMPILE = "compile"
    MEASURE = "measure"


def queue_name(kind: Kind, target: str = "") -> str:
    """The Celery queue: measurements go to the machines that have the architecture."""
    return f"measure.{target}" if kind is Kind.MEASURE else str(kind)


def notify(kind: Kind, count: int = 1, target: str = "") -> None:
    """Wake up to ``count`` workers once the present transaction is committed."""
    queue = queue_name(kind, target)
    messages = max(1, min(count, settings.WAKE_AT_MOST))
    arguments = {"target": target} if kind is Kind.MEASURE else {}
    transaction.on_commit(lambda: _send(kind, queue, arguments, messages))


def notify_of_waiting() -> None:
    """Wake workers for whatever is queued in the rows."""
    if graphs := Graph.objects.filter(state=State.QUEUED).count():
        notify(Kind.PREPARE, graphs)
    if builds := Build.objects.filter(state=State.QUEUED).count():
        notify(Kind.COMPILE, builds)
    waiting = TuningTask.objects.filter(state=State.QUEUED)
    for target in waiting.order_by().values_list("run__target", flat=True).distinct():
        notify(Kind.MEASURE, target=target)


def _send(kind: Kind, queue: str, arguments: dict[str, str], messages: int) -> None:
    make_queue_folders()
    for _ in range(messages):
        app.send_task(
            f"codegen_app.tasks.{kind}", kwargs=arguments, queue=queue, expires=_STALE_AFTER_S
        )
