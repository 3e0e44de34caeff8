"""Points of a series: withdraw, restore and annotate them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from codegen_app.accounts.api_authentication import TokenAuth
from codegen_app.accounts.models import Scope
from codegen_app.site.api.checks import (
    OPTIONAL_KEY,
    READ,
    ROW_REFUSALS,
    TRIAGE,
    NotFoundError,
    check_parameters,
    get_point,
    get_series,
    run_once,
    triager,
)
from codegen_app.tracking.api_alert_schemas import AnnotationRow, AnnotationsList, Note
from codegen_app.tracking.api_schemas import Problem, Reason, WithdrawnRow
from codegen_app.tracking.models import Annotation, Withdrawal
from codegen_app.tracking.services import point_notes, withdrawals

router = Router(tags=["points"])
_WITHDRAW = TokenAuth(Scope.INGEST, Scope.TRIAGE)


@router.post(
    "/series/{int:pk}/data/{int:datum}/withdraw",
    url_name="api_withdraw",
    auth=_WITHDRAW,
    response={200: WithdrawnRow, **ROW_REFUSALS},
    summary="Withdraw a point",
)
def withdraw_point(request: HttpRequest, pk: int, datum: int, body: Reason) -> Any:
    """Exclude a point from comparisons. The point is kept, with user, time and reason. The owner of
    the token needs the permission to triage alerts."""
    check_parameters(request, ())
    return _withdrawn(withdrawals.withdraw(get_point(pk, datum), body.reason, triager(request)))


@router.post(
    "/series/{int:pk}/data/{int:datum}/restore",
    url_name="api_restore",
    auth=_WITHDRAW,
    response={200: WithdrawnRow, **ROW_REFUSALS},
    summary="Restore a point",
)
def restore_point(request: HttpRequest, pk: int, datum: int) -> Any:
    """Include a withdrawn point in comparisons again, and return the withdrawal. The owner of the
    token needs the permission to triage alerts."""
    check_parameters(request, ())
    return _withdrawn(withdrawals.restore(get_point(pk, datum), triager(request)))


@router.get(
    "/series/{int:pk}/annotations",
    url_name="api_annotations",
    auth=READ,
    response={200: AnnotationsList, **ROW_REFUSALS},
    summary="List the notes of a series",
)
def list_annotations(request: HttpRequest, pk: int) -> dict[str, Any]:
    """List the notes at the points of a series, in the order of its history."""
    check_parameters(request, ())
    rows = point_notes.annotations_of([get_series(pk).pk])
    return {"annotations": [_annotation(row) for row in rows]}


@router.post(
    "/series/{int:pk}/data/{int:datum}/annotate",
    url_name="api_annotate",
    auth=TRIAGE,
    response={200: AnnotationRow, **ROW_REFUSALS, 400: Problem, 409: Problem},
    summary="Annotate a point",
    openapi_extra=OPTIONAL_KEY,
)
def annotate_point(request: HttpRequest, pk: int, datum: int, body: Note) -> dict[str, Any]:
    """Add a note at a point; the chart of the series shows it. The owner of the token needs the
    permission to triage alerts."""
    check_parameters(request, ())
    owner, row = triager(request), get_point(pk, datum)
    return run_once(request, lambda: _annotation(point_notes.annotate(row, body.text, owner)))


@router.post(
    "/series/{int:pk}/annotations/{int:annotation}/remove",
    url_name="api_remove_annotation",
    auth=TRIAGE,
    response={200: AnnotationRow, **ROW_REFUSALS},
    summary="Remove a note",
)
def remove_annotation(request: HttpRequest, pk: int, annotation: int) -> dict[str, Any]:
    """Remove a note from the chart. Removing it again has no effect."""
    check_parameters(request, ())
    owner = triager(request)
    rows = Annotation.objects.filter(series=get_series(pk)).select_related("datum", "created_by")
    row = rows.filter(pk=annotation).first() if annotation < 2**63 else None
    if row is None:
        raise NotFoundError(f"series {pk} has no annotation {annotation}")
    point_notes.remove(row, owner)
    return _annotation(row)


def _withdrawn(row: Withdrawal) -> dict[str, Any]:
    by = row.by.get_username() if row.by else None
    return {"at": row.at, "by": by, "reason": row.reason}


def _annotation(row: Annotation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "datum": row.datum_id,
        "at": row.datum.at,
        "text": row.text,
        "created_at": row.created_at,
        "by": row.created_by.get_username() if row.created_by else None,
    }
