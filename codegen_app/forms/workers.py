"""Control of a worker."""

from __future__ import annotations

from django import forms

from codegen_app.models import Control, Worker

PIN = "pin"
_CONTROL_CHOICES = (
    (Control.PAUSE, "pause: take no more work"),
    (Control.DRAIN, "drain: finish what it has, then take no more"),
    (Control.GO, "go on: take work again"),
    (PIN, "serve one queue alone"),
)


class WorkerControlForm(forms.Form):
    """Pause, drain, continue, or serve only one queue; with a reason for the audit log."""

    worker = forms.ModelChoiceField(
        Worker.objects.order_by("name"),
        empty_label=None,
        error_messages={
            "required": "Choose a worker.",
            "invalid_choice": "There is no such worker any more.",
        },
    )
    do = forms.ChoiceField(label="It is to", choices=_CONTROL_CHOICES)
    queue = forms.CharField(
        label="Queue",
        required=False,
        max_length=40,
        help_text="Of those that it serves; empty: all of them.",
    )
    why = forms.CharField(
        label="Why",
        max_length=500,
        error_messages={
            "required": "Say why: the audit log keeps it, and others see it here.",
            "max_length": "A reason has at most %(limit_value)d characters.",
        },
    )
