"""Data sent with an API token or on a page: parsed, validated as a whole, stored once per key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db import IntegrityError, transaction

from codegen_app.accounts import tokens
from codegen_app.accounts.idempotency import KeyReusedError
from codegen_app.accounts.models import ApiToken
from codegen_app.tracking.models import Batch, Source
from codegen_app.tracking.remeasuring import requests
from codegen_app.tracking.services import branch_notes, point_storage
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext


def receive(
    token: ApiToken | None,
    key: str,
    body: bytes,
    context: ImportContext,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Store the data, or return the earlier answer to the same request with the same key.

    ``token`` is None for data from a page, which has no rate limit. ``parameters`` are those of the
    request, including ``format``; ``context`` is made from them. Raises ``UserError`` naming row
    and field, with nothing stored; ``KeyReusedError``; ``tokens.RateError``.
    """
    text = "".join(f"{name}={parameters[name]!r}\n" for name in sorted(parameters))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\n" + body).hexdigest()
    if (answer := _previous_answer(token, key, digest)) is not None:
        return answer
    content = importer.read(body, context, str(parameters.get("format") or importer.AUTO))
    if token is not None:
        tokens.charge_rate(token, points=len(content.points))
    try:
        with transaction.atomic():
            batch = Batch.objects.create(token=token, key=key, body_digest=digest)
            stored = point_storage.store(content.points, Source.API, batch)
            sent = {point.revision for point in content.points}
            requests.close_answered(batch)
            batch.answer = {
                "batch": batch.pk,
                **asdict(stored),
                "notes": branch_notes.upload_notes(batch, sent) if stored.branch_points else [],
                "left_out": [asdict(part) for part in content.left_out],
            }
            batch.save(update_fields=["answer"])
    except IntegrityError:  # the same key arrived twice at once, and the other request was first
        answer = _previous_answer(token, key, digest)
        if answer is None:
            raise
        return answer
    return dict(batch.answer)


def _previous_answer(token: ApiToken | None, key: str, digest: str) -> dict[str, Any] | None:
    known = Batch.objects.filter(token=token, key=key).first()
    if known is None:
        return None
    if known.body_digest != digest:
        raise KeyReusedError
    return dict(known.answer)
