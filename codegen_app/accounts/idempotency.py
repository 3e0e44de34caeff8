"""Requests that a program may repeat after a lost answer: one with a key is executed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from codegen_app.accounts.models import ApiRequest, ApiToken

HEADER = "Idempotency-Key"
MAX_KEY_LENGTH = 200
KEPT = timedelta(days=7)
_DELETE_BATCH = 10_000  # in one statement; the next round deletes the next batch


class KeyReusedError(Exception):
    """The idempotency key was used for another request."""


def run_once(
    token: ApiToken, key: str, content: bytes, action: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Run the action in a transaction and return its answer; for a key that was used before, return
    the earlier answer instead. Without a key (""), the action always runs.

    ``content`` is what must be the same again: the address and the body. Raises
    ``KeyReusedError`` if it is not.
    """
    if not key:
        with transaction.atomic():
            return action()
    digest = hashlib.sha256(content).hexdigest()
    if (answer := _previous_answer(token, key, digest)) is not None:
        return answer
    row = ApiRequest(token=token, key=key, digest=digest)
    try:
        with transaction.atomic():
            row.save()  # another request with this key waits here
            row.answer = action()
            row.save(update_fields=["answer"])
    except IntegrityError:
        answer = _previous_answer(token, key, digest)
        if answer is None:
            raise
        return answer
    return dict(row.answer)


def delete_old() -> int:
    """Delete the oldest requests beyond ``KEPT``; return how many."""
    old = ApiRequest.objects.filter(created_at__lt=Now() - KEPT).order_by("created_at")
    keys = old.values("pk")[:_DELETE_BATCH]
    return ApiRequest.objects.filter(pk__in=keys).delete()[0]


def _previous_answer(token: ApiToken, key: str, digest: str) -> dict[str, Any] | None:
    known = ApiRequest.objects.filter(token=token, key=key).first()
    if known is None:
        return None
    if known.digest != digest:
        raise KeyReusedError
    return dict(known.answer)
