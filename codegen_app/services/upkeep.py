"""What is done periodically: what dead workers held is given on, waiting work is announced."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from codegen_app.models import Worker
from codegen_app.services import audit, builds, ledger, queue, schedules, work

_KEEP_TAKEN_MESSAGES_S = 600
_KEEP_STOPPED_WORKERS = timedelta(days=7)
log = logging.getLogger(__name__)


def look_after() -> None:
    """One round; safe to run from any number of workers at once."""
    if given_on := work.give_on_expired():
        log.warning("%d rows were given on: their workers went silent", given_on)
    ledger.reconcile()
    if again := builds.ask_again():
        log.warning("%d builds were asked for again: their compiler is gone", again)
    schedules.run_due()
    Worker.objects.filter(seen_at__lt=timezone.now() - _KEEP_STOPPED_WORKERS).delete()
    audit.delete_old()
    with transaction.atomic():
        queue.notify_of_waiting()
    sweep_messages()


def sweep_messages() -> None:
    """Remove messages that were taken: the filesystem broker keeps them."""
    folder = settings.CELERY_BROKER_TRANSPORT_OPTIONS.get("processed_folder")
    if folder is None:
        return
    oldest = time.time() - _KEEP_TAKEN_MESSAGES_S
    for message in Path(folder).glob("*.msg"):
        try:
            if message.stat().st_mtime < oldest:
                message.unlink()
        except FileNotFoundError:  # another worker was quicker
            continue
