"""A page's table as text."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.web.forms.tables import AS_TSV
from codegen_app.web.tables import Table, format_tsv


def wants_tsv(request: HttpRequest) -> bool:
    """Whether the request asks for the table as TSV."""
    return request.GET.get("as") == AS_TSV


def tsv_response(table: Table[Any]) -> HttpResponse:
    """Return every matching row in the displayed columns."""
    answer = HttpResponse(
        format_tsv(table), content_type="text/tab-separated-values; charset=utf-8"
    )
    answer.headers["Content-Disposition"] = f'attachment; filename="{table.name}.tsv"'
    return answer
