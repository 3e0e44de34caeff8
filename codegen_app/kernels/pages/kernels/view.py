"""The list of kernels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.kernels.pages.kernels.query import COLUMNS, DEFAULT_SORT, kernel_list
from codegen_app.web.forms.query import KernelsForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import render_page
from codegen_app.web.table_view import tsv_response, wants_tsv


def kernels(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Kernels, the most expensive first; ``?times=``, ``?target=``, ``?language=``, and the table's
    parameters."""
    address, asks = KernelsForm(request.GET), TableForm(request.GET, COLUMNS, DEFAULT_SORT)
    page, table = kernel_list(asks.asked, *map(address.text, ("language", "times", "target")))
    if wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "kernels/kernels.html",
        page,
        as_json=as_json,
        title="Kernels",
        address=address,
        table=table,
        table_address=asks,
    )
