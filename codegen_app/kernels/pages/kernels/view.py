"""The list of kernels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.kernels.pages.kernels.query import COLUMNS, DEFAULT_SORT, kernel_list
from codegen_app.web.forms.query import KernelsForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page


def kernels(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The kernels of a graph, the largest share first; ``?graph=``, ``?times=``, ``?target=``,
    ``?language=``, and the table's parameters."""
    address, form = KernelsForm(request.GET), TableForm(request.GET, COLUMNS, DEFAULT_SORT)
    language, times, target = map(address.text, ("language", "times", "target"))
    page, table = kernel_list(form.asked, language, times, target, address.number("graph"))
    return render_table_page(
        request,
        "kernels/kernels.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Kernels",
        address=address,
    )
