"""The list of kernels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.forms.address import KernelsForm
from codegen_app.selectors.pages.kernels import kernel_list
from codegen_app.views.page import respond


def kernels(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Kernels by name; ``?filter=``, ``?language=`` and ``?start=``."""
    address = KernelsForm(request.GET)
    start = address.number("start") or 0
    page = kernel_list(address.text("filter"), start, address.text("language"))
    return respond(
        request, "pages/kernels.html", page, as_json=as_json, title="Kernels", address=address
    )
