"""One kernel, and the downloads of what was made of it."""

from __future__ import annotations

from pathlib import Path

from django.contrib.staticfiles import finders
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from codegen_app import charts, codeview
from codegen_app.models import Build, GeneratedKernel
from codegen_app.selectors.pages.kernel import KernelPage, UseRow, kernel_page, listing_of
from codegen_app.selectors.pages.listing import FunctionRow
from codegen_app.views.page import Crumb, changed, number, respond
from scheduler import targets
from scheduler.build.recipe import recipe_of
from scheduler.isa.instructions import Kind


def kernel(request: HttpRequest, name: str, *, as_json: bool = False) -> HttpResponse:
    """Source beside instructions; ``?build=`` says which build, ``?node=`` for which node, and
    ``?loop=`` (a loop's first line) shows that loop alone. ``?of=`` marks what computes a node."""
    try:
        page = kernel_page(
            name, number(request, "build"), number(request, "node"), number(request, "sizes") or 0
        )
    except GeneratedKernel.DoesNotExist:
        raise Http404(f"there is no kernel {name}") from None
    inner = bool(request.headers.get("HX-Request"))
    of = request.GET.get("of", "")
    only = page.listing.loop_at(number(request, "loop") or 0) if page.listing else None
    whole = changed(request, loop="")
    answer = respond(
        request,
        "partials/kernel/builds.html" if inner else "pages/kernel.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[*(_stages(page.use) if page.use else ()), Crumb(page.name)],
        code=None if as_json or inner else codeview.panes(page, only, of),
        only=only,
        whole=whole,
        blocks=_blocks(page, whole),
        of=of,
        kinds=[kind.value for kind in Kind],
        targets=targets.names(),
        polling=_polling(request, page),
        limits=page.limits,
        roofline=charts.roofline(page.limits) if page.limits else None,
    )
    build = page.build
    if inner and build and number(request, "waiting") == build.id and not build.is_open:
        answer.headers["HX-Refresh"] = "true"  # what was waited for can be shown now
    return answer


def _blocks(page: KernelPage, whole: str) -> list[tuple[FunctionRow, SafeString]]:
    functions = page.listing.functions if page.listing else ()
    return [(function, codeview.blocks(function, whole)) for function in functions]


def _polling(request: HttpRequest, page: KernelPage) -> str:
    """Where to look for what becomes of the builds that are not over; empty where all are."""
    if page.build is None or not any(build.is_open for build in page.builds):
        return ""
    shown = page.build.id
    query = changed(request, build=shown, waiting=shown if page.build.is_open else "")
    return f"{request.path}{query}"


def lines(_request: HttpRequest, name: str, build: int, first: int) -> HttpResponse:
    """A chunk of a long listing, for the page's script."""
    try:
        view, target = listing_of(name, build)
    except (Build.DoesNotExist, FileNotFoundError):
        raise Http404(f"build {build} has no listing") from None
    if not 1 <= first <= len(view.lines):
        raise Http404(f"the listing has {len(view.lines)} lines")
    return HttpResponse(codeview.listing_chunk(view, target, first))


def source(_request: HttpRequest, name: str, file: str) -> HttpResponse:
    """The source as a file."""
    kernel = get_object_or_404(GeneratedKernel, name=name, source_file=file)
    disposition = f'attachment; filename="{kernel.name}.{file.rpartition(".")[2]}"'
    return HttpResponse(
        kernel.source,
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": disposition},
    )


def download(_request: HttpRequest, name: str, build: int, file: str) -> HttpResponseBase:
    """One file of a build: listing, code object or library."""
    row = get_object_or_404(
        Build.objects.select_related("listing", "code_object", "library"),
        pk=build,
        kernel__name=name,
    )
    recipe = recipe_of(targets.find(row.target))
    artifact = {
        recipe.listing_file: row.listing,
        recipe.code_object_file: row.code_object,
        recipe.library_file: row.library,
    }.get(file)
    if file == "kernel.html" and row.listing is not None:
        return _offline(name, row)
    if artifact is None:
        raise Http404(f"build {build} has no {file}")
    try:
        content = default_storage.open(artifact.path, "rb")
    except FileNotFoundError:
        raise Http404(f"the storage lost {file} of build {build}: build it again") from None
    return FileResponse(
        content,
        as_attachment=True,
        filename=f"{name}.{row.target}.{file.rpartition('.')[2]}",
        content_type="application/octet-stream",
    )


def _offline(name: str, build: Build) -> HttpResponse:
    """A kernel's page as one file: style and script are in it, nothing is fetched."""
    page = kernel_page(name, build.pk, None)
    styles = ("tokens", "base", "components", "code")
    text = render_to_string(
        "offline/kernel.html",
        {
            "page": page,
            "code": codeview.offline(page),
            "kinds": [kind.value for kind in Kind],
            "style": mark_safe("".join(_static(f"css/{name}.css") for name in styles)),  # noqa: S308
            "script": mark_safe(_static("js/offline.js")),  # noqa: S308
        },
    )
    disposition = f'attachment; filename="{name}.{build.target}.html"'
    return HttpResponse(text, headers={"Content-Disposition": disposition})


def _static(path: str) -> str:
    """The text of a file of the site's own."""
    found = finders.find(path)
    assert isinstance(found, str), f"{path} is part of the site"
    return Path(found).read_text()


def _stages(use: UseRow) -> tuple[Crumb, ...]:
    return Crumb(use.graph, use.graph_url), Crumb(f"{use.node} {use.op}", use.url)
