"""The list of kernels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.forms.address import KernelsForm
from codegen_app.selectors.pages.kernels import kernel_list
from codegen_app.views.page import respond


def kernels(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Kernels by name; ``?filter=`` and ``?start=``."""
    address = KernelsForm(request.GET)
    page = kernel_list(address.text("filter"), address.number("start") or 0)
    return respond(
        request, "pages/kernels.html", page, as_json=as_json, title="Kernels", address=address
    )
