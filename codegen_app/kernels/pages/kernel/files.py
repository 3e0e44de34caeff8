"""Data that a kernel's page fetches, and the files that it offers."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from django.contrib import messages
from django.contrib.staticfiles import finders
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
)
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe

from codegen_app.kernels.modelled.rows import load_report
from codegen_app.kernels.modelled.view import modelled_view
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.pages.kernel import codeview
from codegen_app.kernels.pages.kernel.query import kernel_listing, kernel_page
from codegen_app.kernels.queries.listing import ListingView
from codegen_app.platform import files
from codegen_app.web.forms.query import KernelForm
from codegen_app.web.page import TEXT_FILE, download
from scheduler import targets
from scheduler.build.recipe import recipe_of
from scheduler.isa.instructions import kind_titles

#: The largest listing of a single-file page: the page has ten times as many bytes.
OFFLINE_MAX_BYTES = 4 << 20


def listing_lines(request: HttpRequest, name: str, build: int, first: int) -> HttpResponse:
    """A chunk of a long listing for the page's script, with the figures of the modelling
    ``model``."""
    address = KernelForm(request.GET)
    view = _listing_or_404(name, build, address)
    if not 1 <= first <= len(view.lines):
        raise Http404(f"the listing has {len(view.lines)} lines")
    model, launch = address.number("model"), address.number("launch") or 0
    report = load_report(model, build) if model is not None else None
    modelled = modelled_view(report, view, launch) if report else None
    headers = codeview.headers_at(reverse("kernel", args=[name]), build)
    return HttpResponse(codeview.listing_chunk(view, first, modelled, headers))


def listing_index(request: HttpRequest, name: str, build: int) -> JsonResponse:
    """What the page's script needs about all lines of a listing, or of the loop ``loop``."""
    address = KernelForm(request.GET)
    view = _listing_or_404(name, build, address)
    loop = view.loop_at(address.number("loop") or 0)
    return JsonResponse(codeview.listing_index(view, loop))


def _listing_or_404(name: str, build: int, address: KernelForm) -> ListingView:
    try:
        return kernel_listing(name, build, address.text("view"))
    except (Build.DoesNotExist, FileNotFoundError):
        raise Http404(f"build {build} has no listing") from None


def kernel_source(_request: HttpRequest, name: str, file: str) -> HttpResponse:
    kernel = get_object_or_404(GeneratedKernel, name=name, source_file=file)
    return download(kernel.source, f"{kernel.name}.{file.rpartition('.')[2]}", TEXT_FILE)


def build_file(request: HttpRequest, name: str, build: int, file: str) -> HttpResponseBase:
    """One file of a build: listing, code object, intermediate text, or library."""
    row = get_object_or_404(
        Build.objects.select_related("kernel", "listing", "code_object", "intermediate", "library"),
        pk=build,
        kernel__name=name,
    )
    recipe = recipe_of(targets.find(row.target), row.kernel.source_file)
    artifact = {
        recipe.listing_file: row.listing,
        recipe.code_object_file: row.code_object,
        recipe.intermediate_file: row.intermediate,
        recipe.library_file: row.library,
    }.get(file)
    if file == "kernel.html" and row.listing is not None:
        if row.listing.size_bytes > OFFLINE_MAX_BYTES:
            messages.error(
                request,
                f"The listing exceeds the {OFFLINE_MAX_BYTES >> 20} MiB limit of an offline page:"
                " download the listing instead.",
            )
            return redirect(f"{reverse('kernel', args=[name])}?build={build}")
        # The page as one file, with its style and script inlined: nothing is fetched.
        page = kernel_page(name, row.pk, None)
        styles = ("web/tokens", "web/base", "web/components", "kernels/code")
        text = render_to_string(
            "kernels/offline/kernel.html",
            {
                "page": page,
                "code": codeview.offline_panes(page),
                "kinds": kind_titles(page.words),
                "style": mark_safe("".join(_static(f"css/{css}.css") for css in styles)),  # noqa: S308
                "script": mark_safe(_static("js/kernels/offline.js")),  # noqa: S308
            },
        )
        return download(text, f"{name}.{row.target}.html", "text/html; charset=utf-8")
    if artifact is None:
        raise Http404(f"build {build} has no {file}")
    try:
        content = files.read(artifact.path, artifact.digest)
    except FileNotFoundError as error:
        what = "damaged in" if isinstance(error, files.DamagedFileError) else "missing from"
        raise Http404(
            f"{file} of build {build} is {what} the storage: build {name} again from its page"
        ) from None
    return FileResponse(
        BytesIO(content),
        as_attachment=True,
        filename=f"{name}.{row.target}.{file.rpartition('.')[2]}",
        content_type="application/octet-stream",
    )


def _static(path: str) -> str:
    """Return the text of a static file of the site."""
    location = finders.find(path)
    assert isinstance(location, str), f"{path} is part of the site"
    return Path(location).read_text()
