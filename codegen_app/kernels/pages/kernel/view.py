"""One kernel."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from codegen_app.kernels.pages.instruction.view import help_address
from codegen_app.kernels.pages.kernel import codeview, timelineview
from codegen_app.kernels.pages.kernel.build_form import BuildForm, rebuild_form
from codegen_app.kernels.pages.kernel.modelling_form import ModelForm
from codegen_app.kernels.pages.kernel.query import KernelPage, UseRow, kernel_page
from codegen_app.kernels.queries.listing import FunctionRow, LoopRow
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
    if request.headers.get("HX-Request"):
        if address.text("part") == "modelled":
            return _modelled_partial(request, page)
        return _builds_partial(request, page, address)
    return render_page(
        request,
        "kernels/kernel.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[*(_crumbs(page.use) if page.use else ()), Crumb(page.name)],
        status=422 if builds or modelling else 200,
        address=address,
        builds=builds or rebuild_form(page.source_file, page.build),
        polling=_polling(request, page),
        modelling=modelling or model_form(page),
        modelled_polling=_modelled_polling(request, page),
        **({} if as_json else _context(request, page, address)),
    )


def _builds_partial(request: HttpRequest, page: KernelPage, address: KernelForm) -> HttpResponse:
    """Return the list of builds, for a page that waits for one."""
    answer = render_page(
        request,
        "kernels/kernel/builds.html",
        page,
        as_json=False,
        title=page.name,
        polling=_polling(request, page),
    )
    if _is_over(page, address.number("waiting")):
        answer.headers["HX-Refresh"] = "true"  # the result can be shown now
    return answer


def _modelled_partial(request: HttpRequest, page: KernelPage) -> HttpResponse:
    """Return the list of modellings, for a page that waits for one; once all are finished the page
    reloads, since there is more to show."""
    answer = render_page(
        request,
        "kernels/kernel/modellings.html",
        page,
        as_json=False,
        title=page.name,
        modelled_polling=_modelled_polling(request, page),
    )
    if not page.modelled.is_open:
        answer.headers["HX-Refresh"] = "true"
    return answer


def _modelled_polling(request: HttpRequest, page: KernelPage) -> str:
    """Return the address to poll for unfinished modellings; empty if all are finished."""
    return replace_query(request, part="modelled") if page.modelled.is_open else ""


def model_form(page: KernelPage) -> ModelForm | None:
    """Return the form that requests a modelling of the page's kernel; None if no node calls it."""
    if page.use is None:
        return None
    return ModelForm(page.source_file, page.use.symbols, node=page.use.node_id)


def _context(request: HttpRequest, page: KernelPage, address: KernelForm) -> dict[str, Any]:
    """Return the context of the whole page: panes, instructions, limits."""
    loop = address.number("loop") or 0
    only = page.listing.loop_at(loop) if page.listing else None
    whole = replace_query(request, loop="")
    return {
        "code": codeview.panes(page, only, address.text("of"), page.modelled.shown),
        "timeline": _timeline(page, whole),
        "only": only,
        "whole": whole,
        "blocks": _blocks(page, whole),
        "of": address.text("of"),
        **_listing_urls(page, only),
        "kinds": kind_titles(page.words),
        "roofline": charts.roofline(page.limits),
    }


def _listing_urls(page: KernelPage, only: LoopRow | None) -> dict[str, str]:
    """Return the addresses of the listing's full text and of the help on instructions, for the
    page's script."""
    build = page.build
    if build is None or page.listing is None:
        return {}
    is_first = not build.views or page.view == build.views[0]
    text = build.listing_url if is_first else build.intermediate_url
    return {"text": "" if only else text, "help": help_address(build.target)}


def _timeline(page: KernelPage, whole: str) -> SafeString | None:
    shown = page.modelled.shown
    if shown is None or shown.timeline is None:
        return None
    return timelineview.timeline(shown.timeline, whole)


def _is_over(page: KernelPage, waiting: int | None) -> bool:
    """Whether the build that the page waits for is finished, or will never be."""
    return page.build is not None and page.build.id == waiting and not page.build.is_open


def _blocks(page: KernelPage, whole: str) -> list[tuple[FunctionRow, SafeString]]:
    functions = page.listing.functions if page.listing else ()
    return [(function, codeview.block_rows(function, whole)) for function in functions]


def _polling(request: HttpRequest, page: KernelPage) -> str:
    """Return the address to poll for unfinished builds; empty if all are finished."""
    if page.build is None or not any(build.is_open for build in page.builds):
        return ""
    shown = page.build.id
    return replace_query(request, build=shown, waiting=shown if page.build.is_open else "")


def _crumbs(use: UseRow) -> tuple[Crumb, ...]:
    return Crumb(use.graph, use.graph_url), Crumb(f"{use.node} {use.op}", use.url)
