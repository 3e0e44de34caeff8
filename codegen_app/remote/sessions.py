"""Joining: a remote worker's identity, its devices, and its session."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.accounts.models import ApiToken
from codegen_app.remote import leases
from codegen_app.tuning.services.run_devices import measures_times
from codegen_app.workers.models import Worker
from codegen_app.workers.queue import Kind, queue_name
from scheduler.agent.protocol import Welcome
from scheduler.agent.version import PROTOCOL, generator_digest
from scheduler.errors import UserError

_FACTS = ("host", "pid", "devices", "absent", "fence", "versions")


class SessionError(Exception):
    """Another process has joined under the name since, or none has."""


def hello(token: ApiToken, sent: Mapping[str, Any]) -> Welcome:
    """Make a process the worker that its token names, in place of an earlier process.

    Work of the earlier process is queued again, unless this one ``holds`` its lease and may still
    have results. Raises ``UserError`` for another version, a name that the token is not for, and if
    the worker could serve no queue.
    """
    if sent["protocol"] != PROTOCOL or sent["generator"] != generator_digest():
        theirs = sent["versions"].get("kiln", "?")
        raise UserError(
            f"this worker's Kiln ({theirs}, protocol {sent['protocol']}, generator"
            f" {sent['generator'][:8]}) is not the server's (protocol {PROTOCOL}, generator"
            f" {generator_digest()[:8]}): install the same version on both"
        )
    if sent["name"] not in ("", token.worker_name):
        raise UserError(f"this token is for the worker {token.worker_name}, not {sent['name']}")
    name = token.worker_name + (f".{sent['slot']}" if sent["slot"] > 1 else "")
    # The queues of its devices that the token and the worker allow.
    served = dict.fromkeys(
        queue_name(Kind.MEASURE, device["target"])
        for device in sent["devices"]
        if measures_times(device["target"], device["id"])
    )
    limits = token.worker_queue, sent["queue"]
    queues = [queue for queue in served if all(limit in ("", queue) for limit in limits)]
    if not queues:
        requested = " and ".join(filter(None, limits)) or "any queue"
        have = ", ".join(served) or "nothing"
        raise UserError(f"no queue to serve: requested {requested}, but the devices serve {have}")
    session = secrets.token_urlsafe(32)
    facts = {key: sent[key] for key in _FACTS} | {
        "queues": queues,
        "toolchains": [],
        "started_at": timezone.now(),
        "seen_at": timezone.now(),
        "stopped_at": None,
        "remote": True,
        "token": token,
        "session": _digest(session),
    }
    with transaction.atomic():
        worker, _ = Worker.objects.update_or_create(name=name, defaults=facts)
        if worker.pinned_to not in ("", *queues):
            Worker.objects.filter(pk=worker.pk).update(pinned_to="")
    leases.release_others(worker, sent["holds"])
    return Welcome(name, session, tuple(queues))


def worker_of(token: ApiToken, session: str) -> Worker:
    """Return the worker with that session, and record that it was seen. Raises ``SessionError``."""
    found = Worker.objects.filter(token=token, session=_digest(session), remote=True)
    if not session or not found.update(seen_at=Now(), stopped_at=None):
        raise SessionError(
            "this session is over: another process joined with this name, or none has joined yet"
        )
    return found.get()


def leave(worker: Worker) -> None:
    """End the worker's session; its work is queued again."""
    leases.release_others(worker, "")
    Worker.objects.filter(pk=worker.pk, session=worker.session).update(stopped_at=Now(), session="")


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()
