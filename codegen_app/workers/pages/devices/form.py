"""Control of a worker."""

from __future__ import annotations

from django import forms

from codegen_app.workers.models import Control, Worker

PIN = "pin"
_CONTROL_CHOICES = (
    (Control.PAUSE, "pause: take no more work"),
    (Control.DRAIN, "drain: finish its current work, then take no more"),
    (Control.GO, "resume: take work again"),
    (PIN, "pin: serve only one queue"),
)


class WorkerControlForm(forms.Form):
    """Pause, drain, continue, or serve only one queue; with a reason for the audit log."""

    worker = forms.ModelChoiceField(
        Worker.objects.order_by("name"),
        empty_label=None,
        error_messages={
            "required": "Choose a worker.",
            "invalid_choice": "This worker no longer exists.",
        },
    )
    do = forms.ChoiceField(label="Action", choices=_CONTROL_CHOICES)
    queue = forms.CharField(
        label="Queue",
        required=False,
        max_length=40,
        help_text="To pin: one of its queues; empty: all of its queues.",
    )
    why = forms.CharField(
        label="Reason",
        max_length=500,
        error_messages={
            "required": "Enter a reason: it is shown here and recorded in the audit log.",
            "max_length": "A reason has at most %(limit_value)d characters.",
        },
    )
