"""The reason for a change, for the audit log."""

from __future__ import annotations

from django import forms


class ReasonForm(forms.Form):
    """An optional reason."""

    why = forms.CharField(
        label="Reason",
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "Reason", "aria-label": "Reason"}),
        error_messages={"max_length": "A reason has at most %(limit_value)d characters."},
    )
