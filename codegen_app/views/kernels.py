"""One kernel, and the downloads of what was made of it."""

from __future__ import annotations

from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404

from codegen_app import codeview
from codegen_app.models import Build, GeneratedKernel
from codegen_app.selectors.pages.kernel import UseRow, kernel_page, listing_of
from codegen_app.views.page import Crumb, respond
from scheduler import targets
from scheduler.isa.instructions import Kind

_FILES = {"kernel.s": "listing", "kernel.hsaco": "code_object", "kernel.so": "library"}


def kernel(request: HttpRequest, name: str, *, as_json: bool = False) -> HttpResponse:
    """Source beside instructions; ``?build=`` says which build, ``?node=`` for which node."""
    try:
        page = kernel_page(name, _number(request, "build"), _number(request, "node"))
    except GeneratedKernel.DoesNotExist:
        raise Http404(f"there is no kernel {name}") from None
    use = page.use
    return respond(
        request,
        "pages/kernel.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[
            *(_stages(use) if use else ()),
            Crumb(page.name),
        ],
        code=None if as_json else codeview.panes(page),
        kinds=[kind.value for kind in Kind],
        targets=targets.names(),
    )


def lines(_request: HttpRequest, name: str, build: int, first: int) -> HttpResponse:
    """A chunk of a long listing, for the page's script."""
    try:
        view, target = listing_of(name, build)
    except (Build.DoesNotExist, FileNotFoundError):
        raise Http404(f"build {build} has no listing") from None
    if not 1 <= first <= len(view.lines):
        raise Http404(f"the listing has {len(view.lines)} lines")
    return HttpResponse(codeview.listing_chunk(view, target, first))


def source(_request: HttpRequest, name: str) -> HttpResponse:
    """The source as a file."""
    kernel = get_object_or_404(GeneratedKernel, name=name)
    disposition = f'attachment; filename="{kernel.name}.hip"'
    return HttpResponse(
        kernel.source,
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": disposition},
    )


def download(_request: HttpRequest, name: str, build: int, file: str) -> HttpResponseBase:
    """One file of a build: listing, code object or library."""
    row = get_object_or_404(
        Build.objects.select_related(*_FILES.values()), pk=build, kernel__name=name
    )
    artifact = getattr(row, _FILES[file]) if file in _FILES else None
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


def _number(request: HttpRequest, name: str) -> int | None:
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() else None


def _stages(use: UseRow) -> tuple[Crumb, ...]:
    return Crumb(use.graph, use.graph_url), Crumb(f"{use.node} {use.op}", use.url)
