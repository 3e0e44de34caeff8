"""The reason for a change, for the audit log."""

from __future__ import annotations

from django import forms


class ReasonForm(forms.Form):
    """An optional reason."""

    why = forms.CharField(
        label="Why",
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "Why", "aria-label": "Why"}),
        error_messages={"max_length": "A reason has at most %(limit_value)d characters."},
    )
