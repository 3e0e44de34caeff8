"""Pages with a table: rendered, or the table alone as TSV."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.web.forms.tables import AS_TSV, TableForm
from codegen_app.web.page import download, render_page
from codegen_app.web.tables import Table, format_tsv


def wants_tsv(request: HttpRequest) -> bool:
    """Whether the request asks for the table as TSV."""
    return request.GET.get("as") == AS_TSV


def tsv_response(table: Table[Any]) -> HttpResponse:
    """Return every matching row in the displayed columns."""
    content_type = "text/tab-separated-values; charset=utf-8"
    return download(format_tsv(table), f"{table.name}.tsv", content_type)


def render_table_page(
    request: HttpRequest,
    template: str,
    data: Any,
    table: Table[Any] | None,
    table_form: TableForm | None,
    *,
    as_json: bool,
    title: str,
    **context: Any,
) -> HttpResponse:
    """Render a page (``render_page``) with its table, which ``table_form`` asks for; or return the
    table as TSV if the request asks for that."""
    if table is not None and wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        template,
        data,
        as_json=as_json,
        title=title,
        table=table,
        table_address=table_form,
        **context,
    )
