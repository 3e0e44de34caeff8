"""Request an API token."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone

from codegen_app.accounts.models import Scope

LONGEST_DAYS = 3650


class TokenForm(forms.Form):
    """The token's purpose, its permissions, and its lifetime."""

    name = forms.CharField(
        label="Purpose",
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "CI on the GPU host"}),
        error_messages={
            "required": "Enter the purpose of the token.",
            "max_length": "At most %(limit_value)d characters.",
        },
    )
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=Scope.choices,
        initial=[Scope.INGEST],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Select at least one scope."},
    )
    worker_name = forms.CharField(
        label="Worker name",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "mi300x-lab; worker tokens only"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )
    worker_queue = forms.CharField(
        label="Worker queue",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "measure.gfx942; empty: any queue"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )
    days = forms.IntegerField(
        label="Days until it expires",
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=365,
        error_messages={
            "required": f"Enter a number of days, 1 to {LONGEST_DAYS}.",
            "min_value": "At least one day.",
            "max_value": f"At most {LONGEST_DAYS} days.",
        },
    )

    def expires_at(self) -> datetime:
        """Return the requested expiry."""
        return timezone.now() + timedelta(days=self.cleaned_data["days"])
