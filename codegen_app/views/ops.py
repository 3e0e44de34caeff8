"""The list of ops."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.forms.address import OpsForm
from codegen_app.selectors.pages.ops import op_list
from codegen_app.views.page import respond


def ops(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Ops by name; ``?words=``, ``?by=kernel`` or ``reference``, ``?core=only``, ``?start=``."""
    address = OpsForm(request.GET)
    page = op_list(
        address.text("words"),
        address.text("by"),
        bool(address.text("core")),
        address.number("start") or 0,
    )
    return respond(request, "pages/ops.html", page, as_json=as_json, title="Ops", address=address)
