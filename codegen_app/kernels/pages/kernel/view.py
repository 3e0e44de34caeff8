"""One kernel."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.kernels.pages.instruction.view import help_address
from codegen_app.kernels.pages.kernel import codeview, timelineview
from codegen_app.kernels.pages.kernel.forms import BuildForm, ModelForm, rebuild_form
from codegen_app.kernels.pages.kernel.query import KernelPage, kernel_page
from codegen_app.kernels.pages.kernel.sourcestalls import source_regions, stalls_by_source
from codegen_app.tuning import charts
from codegen_app.web.addresses import replace_query
from codegen_app.web.forms.query import KERNEL_TABS, KernelForm
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
    """Source beside instructions, and one section below. ``builds`` and ``modelling`` are invalid
    forms. A script gets a section, or the part that it polls, alone."""
    address = KernelForm(request.GET)
    build, node, sizes = map(address.number, ("build", "node", "sizes"))
    model = address.number("model"), address.number("launch") or 0, address.number("at")
    page = get_or_404(
        f"kernel {name}",
        kernel_page,
        *(name, build, node, sizes or 0, address.text("view"), model, address.text("target")),
    )
    # A link to a modelling opens it.
    tab = address.text("tab") or ("modelled" if model[0] is not None else page.default_tab)
    tab = "builds" if builds else "modelled" if modelling else tab
    context = {
        "address": address,
        "tab": tab,
        "tabs": TAB_TITLES,
        "sections": _SECTIONS[tab],
        "builds": builds or rebuild_form(page.source_file, page.build),
        "modelling": modelling or model_form(page),
        # The addresses that a page polls for unfinished builds and modellings.
        "polling": "",
        "modelled_polling": replace_query(request, part="modelled")
        if page.modelled.is_open
        else "",
    }
    if page.build is not None and any(row.is_open for row in page.builds):
        waiting = page.build.id if page.build.is_open else ""
        context["polling"] = replace_query(request, build=page.build.id, part="", waiting=waiting)
    if request.headers.get("HX-Request"):
        return _part(request, page, address, context)
    use = page.use
    stages = [Crumb(page.name)]
    if use is not None:
        stages = [Crumb(use.graph, use.graph_url), Crumb(f"{use.node} {use.op}", use.url), *stages]
    if not as_json:
        context |= _pane_context(page, address) | _tab_context(request, page, tab)
    return render_page(
        request,
        "kernels/kernel.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=stages,
        status=422 if builds or modelling else 200,
        **context,
    )


TAB_TITLES = dict(
    zip(
        KERNEL_TABS,
        (
            *("Resources", "Instructions", "Modelled", "Measurements", "Roofline"),
            *("Nodes and interface", "Builds and files"),
        ),
        strict=True,
    )
)
_SECTIONS = {
    "resources": ("kernels/kernel/resources.html",),
    "instructions": ("kernels/kernel/instructions.html",),
    "modelled": ("kernels/kernel/modelled.html",),
    "results": ("kernels/kernel/results.html",),
    "roofline": ("kernels/kernel/roofline.html",),
    "uses": (
        *("kernels/kernel/provenance.html", "kernels/kernel/uses.html"),
        "kernels/kernel/interface.html",
    ),
    "builds": (
        *("kernels/kernel/build_form.html", "kernels/kernel/builds.html"),
        "kernels/kernel/diagnostics.html",
    ),
}


def _part(
    request: HttpRequest, page: KernelPage, address: KernelForm, context: dict[str, Any]
) -> HttpResponse:
    """Return the section that a tab opens, or the builds or modellings that the page polls."""
    part = address.text("part") or "builds"
    is_over = False
    if part == "tab":
        context |= _tab_context(request, page, context["tab"])
    elif part == "modelled":
        is_over = not page.modelled.is_open
    else:
        awaited = address.number("waiting")
        is_over = page.build is not None and page.build.id == awaited and not page.build.is_open
    template = {"modelled": "modellings"}.get(part, part)
    answer = render_page(
        request,
        f"kernels/kernel/{template}.html",
        page,
        as_json=False,
        title=page.name,
        **context,
    )
    if is_over:
        answer.headers["HX-Refresh"] = "true"  # the result can be shown now
    return answer


def model_form(page: KernelPage) -> ModelForm | None:
    """Return the form that requests a modelling of the page's kernel; None if no node calls it."""
    if page.use is None:
        return None
    return ModelForm(page.source_file, page.use.symbols, node=page.use.node_id)


def _pane_context(page: KernelPage, address: KernelForm) -> dict[str, Any]:
    """Return the context of source and listing."""
    listing, build = page.listing, page.build
    only = listing.loop_at(address.number("loop") or 0) if listing else None
    context = {
        "code": codeview.panes(page, only, address.text("of"), page.modelled.shown),
        "only": only,
        "of": address.text("of"),
    }
    if build is not None and listing is not None:
        # The listing's full text, and the help on instructions, for the page's script.
        is_first = not build.views or page.view == build.views[0]
        text = build.listing_url if is_first else build.intermediate_url
        context |= {"text": "" if only else text, "help": help_address(build.target)}
    return context


def _tab_context(request: HttpRequest, page: KernelPage, tab: str) -> dict[str, Any]:
    """Return the context of one section. ``whole`` is the URL of the page with the whole
    listing."""
    listing, modelled = page.listing, page.modelled.shown
    whole = replace_query(request, loop="", part="")
    context: dict[str, Any] = {"whole": whole, "kinds": kind_titles(page.words)}
    if tab == "instructions" and listing is not None:
        context["only"] = listing.loop_at(KernelForm(request.GET).number("loop") or 0)
        context["blocks"] = [
            (function, codeview.block_rows(function, whole)) for function in listing.functions
        ]
    if tab == "modelled" and modelled is not None:
        regions = source_regions(page.source, page.source_file)
        context["by_source"] = stalls_by_source(page.source, regions, modelled.instructions)
        if modelled.timeline:
            context["timeline"] = timelineview.timeline(modelled.timeline, whole)
    if tab == "roofline":
        context["roofline"] = charts.roofline(page.limits)
    return context
