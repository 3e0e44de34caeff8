"""Devices, environments and targets."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.selectors.pages.devices import devices as read
from codegen_app.views.page import respond


def devices(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """What can be run on and compiled for, and why the rest is not there."""
    return respond(request, "pages/devices.html", read(), as_json=as_json, title="Devices")
