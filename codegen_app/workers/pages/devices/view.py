"""Devices, environments and targets."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import render_page
from codegen_app.web.table_view import tsv_response, wants_tsv
from codegen_app.web.tables import build_table as made
from codegen_app.workers.pages.devices.columns import COLUMNS
from codegen_app.workers.pages.devices.form import WorkerControlForm
from codegen_app.workers.pages.devices.query import devices as read


def devices(
    request: HttpRequest, *, as_json: bool = False, steering: WorkerControlForm | None = None
) -> HttpResponse:
    """Devices and compilation targets, and why others are missing; the environments as a table.
    ``steering`` is an invalid form."""
    request.path = reverse("devices")  # the page's links use it, also after an error
    page, asks = read(), TableForm(request.GET, COLUMNS)
    table = made("environments", COLUMNS, page.environments, asks.asked)
    if wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "workers/devices.html",
        page,
        as_json=as_json,
        title="Devices",
        table=table,
        table_address=asks,
        status=422 if steering else 200,
        steering=steering or WorkerControlForm(),
    )
