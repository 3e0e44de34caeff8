"""Devices, environments and targets."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table
from codegen_app.workers.pages.devices.form import WorkerControlForm
from codegen_app.workers.pages.devices.query import COLUMNS
from codegen_app.workers.pages.devices.query import devices as read


def devices(
    request: HttpRequest, *, as_json: bool = False, steering: WorkerControlForm | None = None
) -> HttpResponse:
    """Devices and compilation targets, and why others are missing; the environments as a table.
    ``steering`` is an invalid form."""
    request.path = reverse("devices")  # the page's links use it, also after an error
    page, form = read(), TableForm(request.GET, COLUMNS)
    table = build_table("environments", COLUMNS, page.environments, form.asked)
    return render_table_page(
        request,
        "workers/devices.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Devices",
        status=422 if steering else 200,
        steering=steering or WorkerControlForm(),
    )
