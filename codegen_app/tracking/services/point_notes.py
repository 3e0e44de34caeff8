"""Notes that people and programs write at points of a series."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from codegen_app.accounts import audit
from codegen_app.tracking.models import Annotation, Datum, Series
from scheduler.errors import UserError
from scheduler.results.points import fields

MAX_LENGTH = 500
MAX_ANNOTATIONS = 200
"""Annotations of one series, all of which its page and its chart show."""


@transaction.atomic
def annotate(datum: Datum, text: str, by: AbstractBaseUser) -> Annotation:
    """Add a note at a point.

    Raises ``UserError`` for an invalid text, and for one note more than a series can have.
    """
    Series.objects.select_for_update().get(pk=datum.series_id)
    note = fields.as_text(text.strip(), "text", MAX_LENGTH)
    if not note:
        raise UserError("text: enter a note")
    if annotations_of([datum.series_id]).count() >= MAX_ANNOTATIONS:
        raise UserError(
            f"series {datum.series_id} has {MAX_ANNOTATIONS} annotations, the most that its chart"
            " shows: remove one first"
        )
    row = Annotation.objects.create(
        datum=datum, series_id=datum.series_id, text=note, created_by_id=audit.actor_id(by)
    )
    audit.record(by, "annotate", datum, note)
    return row


@transaction.atomic
def remove(annotation: Annotation, by: AbstractBaseUser) -> bool:
    """Remove a note; return False if it was removed already."""
    standing = Annotation.objects.filter(pk=annotation.pk, removed_at=None)
    if not standing.update(removed_at=Now(), removed_by_id=audit.actor_id(by)):
        return False
    audit.record(by, "remove annotation", annotation)
    return True


def annotations_of(series: Iterable[int]) -> QuerySet[Annotation]:
    """Return the notes of series in the order of their history, without removed ones."""
    rows = Annotation.objects.filter(series__in=series, removed_at=None)
    related = rows.select_related("datum", "created_by").defer("datum__samples")
    return related.order_by("datum__at", "pk")
