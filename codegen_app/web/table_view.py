"""A page's table as text."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.web.forms.tables import AS_TSV
from codegen_app.web.page import download
from codegen_app.web.tables import Table, format_tsv


def wants_tsv(request: HttpRequest) -> bool:
    """Whether the request asks for the table as TSV."""
    return request.GET.get("as") == AS_TSV


def tsv_response(table: Table[Any]) -> HttpResponse:
    """Return every matching row in the displayed columns."""
    content_type = "text/tab-separated-values; charset=utf-8"
    return download(format_tsv(table), f"{table.name}.tsv", content_type)
