"""The list of ops."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.ops.form import OpsForm
from codegen_app.graphs.pages.ops.query import COLUMNS, op_list
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import render_page
from codegen_app.web.table_view import tsv_response, wants_tsv


def ops(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Ops by name; ``?words=``, ``?by=kernel`` or ``reference``, ``?core=only``, ``?start=``."""
    address, asks = OpsForm(request.GET), TableForm(request.GET, COLUMNS)
    words, made_by, core = map(address.text, ("words", "by", "core"))
    page, table = op_list(words, made_by, bool(core), asks.asked)
    if wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "graphs/ops.html",
        page,
        as_json=as_json,
        title="Ops",
        address=address,
        table=table,
        table_address=asks,
    )
