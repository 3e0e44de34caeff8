"""One graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.graph.code import with_generated_code
from codegen_app.graphs.pages.graph.columns import NODES, scheduled_columns
from codegen_app.graphs.pages.graph.drawing import draw_kernels, draw_nodes, selected_box
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.graphs.pages.times import TimesForm
from codegen_app.web import codelines
from codegen_app.web.addresses import replace_query
from codegen_app.web.forms.query import GraphForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import Crumb, get_or_404
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import Table, build_table

_RESET_TABLE = dict.fromkeys(("sort", "filter", "column"), "")  # another table has other columns
_TABS = {GraphForm.KERNELS: "Scheduled nodes", GraphForm.NODES: "Graph nodes"}
_TABS |= {GraphForm.FUSION: "Fusion", GraphForm.WRAPPER: "Wrapper"}


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The node graph beside a table, or the wrapper; ``?times=`` selects whose times are shown."""
    address = GraphForm(request.GET)
    page = get_or_404(f"graph {pk}", graph_page, pk, address.text("times"))
    view = address.view_name(has_wrapper=bool(page.wrapper))
    page = with_generated_code(page, with_wrapper=view == GraphForm.WRAPPER)
    has_wrapper = bool(page.wrapper)
    # The table next to the drawing; None if a text is shown there.
    table: Table[Any] | None = None
    form: TableForm | None = None
    if view == GraphForm.NODES:
        form = TableForm(request.GET, NODES)
        table = build_table("nodes", NODES, page.nodes, form.asked)
    elif view == GraphForm.KERNELS:
        columns = scheduled_columns(page)
        form = TableForm(request.GET, columns, by="-median" if page.measured.measured else "")
        # Nodes that were not measured come last, by the lower bounds of their times.
        rows = sorted(page.scheduled, key=lambda row: -(row.least_ns or 0.0))
        table = build_table("scheduled", columns, rows, form.asked)
    tabs = [
        (
            text,
            replace_query(request, view="" if key == GraphForm.KERNELS else key, **_RESET_TABLE),
            key == view,
        )
        for key, text in _TABS.items()
        if has_wrapper or key != GraphForm.WRAPPER
    ]
    draws_kernels = view != GraphForm.NODES and bool(page.scheduled)
    drawing = draw_kernels(page) if draws_kernels else draw_nodes(page)
    selected = address.text("scheduled"), address.text("node")
    is_timed = draws_kernels and page.measured.measured > 0
    return render_table_page(
        request,
        "graphs/graph.html",
        page,
        table,
        form,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        address=address,
        tabs=tabs,
        view=view,
        drawing=asdict(drawing),
        draws_kernels=draws_kernels,
        selected=selected_box(drawing, *(selected if draws_kernels else selected[::-1])),
        is_timed=is_timed,
        colour=(address.text("colour") or GraphForm.TIME) if is_timed else GraphForm.KIND,
        colours=[
            (GraphForm.TIME, "Time", replace_query(request, colour="")),
            (GraphForm.KIND, "Kind", replace_query(request, colour=GraphForm.KIND)),
        ],
        times=TimesForm(request.GET, page.buckets, "view", "scheduled", "node", "colour"),
        wrapper=codelines.highlight_python(page.wrapper) if view == GraphForm.WRAPPER else "",
    )
