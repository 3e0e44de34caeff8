"""The two sides of a change."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.kernels.pages.compare import diffview
from codegen_app.tracking.pages.change.query import change_page
from codegen_app.web.page import Crumb, get_or_404, render_page


def change(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The differences first, then the cause, then both sources and listings if they are ours."""
    page = get_or_404(f"change {pk}", change_page, pk)
    compared = page.compared
    return render_page(
        request,
        "tracking/change.html",
        page,
        as_json=as_json,
        title=f"Change at {page.moved.revision}: {page.series.name}",
        stages=[
            Crumb(page.series.problem, page.series.url),
            Crumb(f"change at {page.moved.revision}"),
        ],
        compared=compared,
        source=diffview.diff(compared.source, "the sources") if compared else "",
        functions=[
            (function, diffview.diff(function.rows, function.left))
            for function in (compared.functions if compared else ())
        ],
    )
