"""Requests to senders, answered by the points that arrive."""

from __future__ import annotations

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from codegen_app.tracking.models import Batch, Datum, MeasurementRequest


def close_answered(batch: Batch) -> int:
    """Close the requests that a batch answers, by a point of the series at the revision that was
    measured after the request; return how many. Part of the transaction that stores the batch."""
    waiting = MeasurementRequest.objects.filter(answered_at__isnull=True, withdrawn_at__isnull=True)
    if not waiting.exists():
        return 0
    sent = Datum.objects.filter(
        batch=batch,
        series=OuterRef("series"),
        revision=OuterRef("revision"),
        measured_at__gte=OuterRef("created_at"),
    )
    return waiting.filter(Exists(sent)).update(answered_at=Now())
