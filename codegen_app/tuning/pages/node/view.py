"""One scheduled node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse, QueryDict

from codegen_app.graphs.pages.times import TimesForm
from codegen_app.tuning import charts
from codegen_app.tuning.pages.explorer.builder import LANGUAGE, parameters_of
from codegen_app.tuning.pages.explorer.form import MODELLED, TRIED, ExplorerForm
from codegen_app.tuning.pages.explorer.model import MEASURED
from codegen_app.tuning.pages.explorer.sources import node_source
from codegen_app.tuning.pages.explorer.view import ROWS, ExplorerView, explorer_view, matching_rows
from codegen_app.tuning.pages.node.query import CandidateRow, NodePage, node_page
from codegen_app.tuning.pages.run.candidate_columns import columns, parameter_key
from codegen_app.web.forms.query import NodeForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import Crumb, get_or_404
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table

_OTHER_PARAMS = ("x", "y", "colour", "across", "down", "cell", "target", "sizes", "language")
_TABLE_PARAMS = ("sort", "filter")


def template_node(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The problem, its origins and its candidates, as a table and an explorer (``ExplorerForm``);
    ``?times=`` selects whose times are shown, ``?target=`` the legality rules, ``?sizes=`` the
    sizes of its limits. A script that changes the filter gets only the table."""
    address = NodeForm(request.GET)
    sizes, bucket = address.number("sizes") or 0, address.text("times")
    page = get_or_404(f"scheduled node {pk}", node_page, pk, sizes, bucket, address.text("target"))
    language = address.text("language")
    rows = tuple(row for row in page.candidates if language in ("", row.language))
    explored = _explorer_view(request.GET, page, rows)
    names = sorted(name for name in explored.explorer.keys if name != LANGUAGE)
    all_columns = columns(page, names)
    form = TableForm(request.GET, all_columns, by="median" if page.timed else "")
    table = build_table("candidates", all_columns, rows, form.asked, page=ROWS)
    inner = bool(request.headers.get("HX-Request"))
    return render_table_page(
        request,
        "tuning/node/linked.html" if inner else "tuning/node.html",
        replace(page, explorer=explored.explorer),
        table,
        form,
        as_json=as_json,
        title=f"{page.name} · {page.op}",
        stages=[Crumb(page.graph, page.graph_url), Crumb(f"{page.name} {page.op}")],
        address=address,
        previous=page.previous,
        next=page.next,
        times=TimesForm(request.GET, page.buckets, *_OTHER_PARAMS, *_TABLE_PARAMS),
        explored=explored,
        matching=matching_rows(table, "position"),
        parameters=[(name, parameter_key(name)) for name in names],
        language=language,
        roofline=charts.roofline(page.limits),
    )


def _explorer_view(query: QueryDict, page: NodePage, rows: Sequence[CandidateRow]) -> ExplorerView:
    """Use measured times if there are any, unless the address asks for modelled ones."""
    times = [MEASURED] if any(row.timing for row in rows) else []
    times += [MODELLED] if any(row.modelled for row in rows) else []
    first = next(iter(times), MEASURED)
    source = node_source(page, rows, first)
    parameters = parameters_of(source)
    axes = [TRIED, MODELLED] if times == [MEASURED, MODELLED] else [TRIED]
    form = ExplorerForm(query, [parameter.name for parameter in parameters], axes, times)
    chosen = form.chosen("y") or first
    if chosen != first:
        source = node_source(page, rows, chosen)
    return explorer_view(source, parameters, form)
