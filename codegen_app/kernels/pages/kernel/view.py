"""One kernel."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.kernels.pages.instruction.view import help_address
from codegen_app.kernels.pages.kernel import codeview, timelineview
from codegen_app.kernels.pages.kernel.forms import BuildForm, ModelForm, rebuild_form
from codegen_app.kernels.pages.kernel.query import KernelPage, kernel_page
from codegen_app.tuning import charts
from codegen_app.web.addresses import replace_query
from codegen_app.web.forms.query import KernelForm
from codegen_app.web.page import Crumb, get_or_404, render_page
from scheduler.isa.instructions import kind_titles


def kernel(
    request: HttpRequest,
    name: str,
    *,
    as_json: bool = False,
    builds: BuildForm | None = None,
    modelling: ModelForm | None = None,
) -> HttpResponse:
    """Source beside instructions. ``builds`` and ``modelling`` are invalid forms."""
    address = KernelForm(request.GET)
    build, node, sizes = map(address.number, ("build", "node", "sizes"))
    view = address.text("view")
    model = address.number("model"), address.number("launch") or 0, address.number("at")
    page = get_or_404(f"kernel {name}", kernel_page, name, build, node, sizes or 0, view, model)
    # The addresses that a page polls for unfinished builds and modellings; "" if all are finished.
    modelled_polling = replace_query(request, part="modelled") if page.modelled.is_open else ""
    polling = ""
    if page.build is not None and any(row.is_open for row in page.builds):
        waiting = page.build.id if page.build.is_open else ""
        polling = replace_query(request, build=page.build.id, waiting=waiting)
    if request.headers.get("HX-Request"):
        if address.text("part") == "modelled":
            part, is_over = "modellings", not page.modelled.is_open
        else:
            awaited = address.number("waiting")
            part = "builds"
            is_over = page.build is not None and page.build.id == awaited and not page.build.is_open
        answer = render_page(
            request,
            f"kernels/kernel/{part}.html",
            page,
            as_json=False,
            title=page.name,
            polling=polling,
            modelled_polling=modelled_polling,
        )
        if is_over:
            answer.headers["HX-Refresh"] = "true"  # the result can be shown now
        return answer
    use = page.use
    stages = [Crumb(page.name)]
    if use is not None:
        stages = [Crumb(use.graph, use.graph_url), Crumb(f"{use.node} {use.op}", use.url), *stages]
    return render_page(
        request,
        "kernels/kernel.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=stages,
        status=422 if builds or modelling else 200,
        address=address,
        builds=builds or rebuild_form(page.source_file, page.build),
        polling=polling,
        modelling=modelling or model_form(page),
        modelled_polling=modelled_polling,
        **({} if as_json else _context(request, page, address)),
    )


def model_form(page: KernelPage) -> ModelForm | None:
    """Return the form that requests a modelling of the page's kernel; None if no node calls it."""
    if page.use is None:
        return None
    return ModelForm(page.source_file, page.use.symbols, node=page.use.node_id)


def _context(request: HttpRequest, page: KernelPage, address: KernelForm) -> dict[str, Any]:
    """Return the context of the whole page: panes, instructions, limits."""
    listing, build, modelled = page.listing, page.build, page.modelled.shown
    only = listing.loop_at(address.number("loop") or 0) if listing else None
    whole_url = replace_query(request, loop="")
    context = {
        "code": codeview.panes(page, only, address.text("of"), modelled),
        "timeline": timelineview.timeline(modelled.timeline, whole_url)
        if modelled and modelled.timeline
        else None,
        "only": only,
        "whole": whole_url,
        "blocks": [
            (function, codeview.block_rows(function, whole_url))
            for function in (listing.functions if listing else ())
        ],
        "of": address.text("of"),
        "kinds": kind_titles(page.words),
        "roofline": charts.roofline(page.limits),
    }
    if build is not None and listing is not None:
        # The listing's full text, and the help on instructions, for the page's script.
        is_first = not build.views or page.view == build.views[0]
        text = build.listing_url if is_first else build.intermediate_url
        context |= {"text": "" if only else text, "help": help_address(build.target)}
    return context
