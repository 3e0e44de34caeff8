"""Tell a worker to pause, drain, continue, or serve one queue."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.workers import controls
from codegen_app.workers.models import Control
from codegen_app.workers.pages.devices.form import PIN, WorkerControlForm
from codegen_app.workers.pages.devices.view import devices
from scheduler.errors import UserError

_RESULT_TEXTS = {
    Control.GO: "takes work again",
    Control.PAUSE: "is paused",
    Control.DRAIN: "finishes its current work, then takes no more",
}


@require_permission(permissions.WORKERS)
@require_POST
def control_worker(request: HttpRequest) -> HttpResponse:
    """Apply the form of the devices page."""
    form = WorkerControlForm(request.POST)
    if not form.is_valid():
        return devices(request, steering=form)
    fields, by = form.cleaned_data, actor(request)
    worker, queue, why = fields["worker"], fields["queue"], fields["why"]
    try:
        if fields["do"] == PIN:
            changed = controls.pin(worker, queue, by, why)
            result = f"serves only {queue}" if queue else "serves all its queues"
        else:
            control = Control(fields["do"])
            changed = controls.set_control(worker, control, by, why)
            result = _RESULT_TEXTS[control]
    except UserError as error:
        form.add_error("queue", str(error))
        return devices(request, steering=form)
    if changed:
        messages.success(request, f"{worker} {result}.")
    else:
        messages.warning(request, f"{worker} is already in this state.")
    return redirect("devices")
