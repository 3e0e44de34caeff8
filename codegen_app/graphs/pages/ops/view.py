"""The list of ops."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.ops.query import COLUMNS, MADE_BY, op_list
from codegen_app.web.forms.query import OptionalChoiceField, QueryForm, Text
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page


class OpsForm(QueryForm):
    """Words, how an op is computed (``by``), and whether only Core ATen is listed."""

    words = Text()
    by = OptionalChoiceField(MADE_BY)
    core = OptionalChoiceField(("only",))


def ops(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Ops by name; ``?words=``, ``?by=kernel`` or ``reference``, ``?core=only``, ``?start=``."""
    address, form = OpsForm(request.GET), TableForm(request.GET, COLUMNS)
    words, made_by, core = map(address.text, ("words", "by", "core"))
    page, table = op_list(words, made_by, bool(core), form.asked)
    return render_table_page(
        request,
        "graphs/ops.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Ops",
        address=address,
    )
