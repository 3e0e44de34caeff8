"""Request an API token."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone

from codegen_app.models import Scope

LONGEST_DAYS = 3650


class TokenForm(forms.Form):
    """The token's purpose, its permissions, and its lifetime."""

    name = forms.CharField(
        label="What it is for",
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "CI on the GPU host"}),
        error_messages={
            "required": "Say what the token is for.",
            "max_length": "At most %(limit_value)d characters.",
        },
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        choices=Scope.choices,
        initial=[Scope.INGEST],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose one or more things that the token may do."},
    )
    worker_name = forms.CharField(
        label="The worker's name",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "mi300x-lab: of a worker's token alone"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )
    worker_queue = forms.CharField(
        label="The one queue that it may serve",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "measure.gfx942: nothing for any"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )
    days = forms.IntegerField(
        label="Days until it expires",
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=365,
        error_messages={
            "required": f"Say after how many days it expires, 1 to {LONGEST_DAYS}.",
            "min_value": "At least one day.",
            "max_value": f"At most {LONGEST_DAYS} days.",
        },
    )

    def expires_at(self) -> datetime:
        """Return the requested expiry."""
        return timezone.now() + timedelta(days=self.cleaned_data["days"])
