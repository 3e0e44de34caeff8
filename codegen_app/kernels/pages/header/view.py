"""A header that a build's instructions were inlined from."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from codegen_app.kernels.pages.header.query import header_page
from codegen_app.kernels.pages.kernel import codeview
from codegen_app.web.page import Crumb, get_or_404, render_page


def header(
    request: HttpRequest, name: str, build: int, file: str, *, as_json: bool = False
) -> HttpResponse:
    """The header, read-only, with the number of instructions from each line."""
    try:
        page = get_or_404(f"build {build} of {name}", header_page, name, build, file)
    except FileNotFoundError:
        raise Http404(f"build {build} has no instructions from header {file}") from None
    kernel = f"{reverse('kernel', args=[name])}?build={build}"
    return render_page(
        request,
        "kernels/header.html",
        page,
        as_json=as_json,
        title=page.file,
        stages=[Crumb(page.kernel, kernel), Crumb(page.file)],
        back=kernel,
        code=codeview.header_lines(page, kernel),
        columns=("x",),
    )
