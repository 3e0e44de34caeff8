"""Asking for builds of a kernel."""

from __future__ import annotations

from django import forms

from codegen_app.forms.fields import DEFAULT_FLAGS, FlagsField
from codegen_app.services.engine import served_names


class BuildForm(forms.Form):
    """Targets and flags."""

    target = forms.MultipleChoiceField(
        label="Build for",
        choices=lambda: [(name, name) for name in served_names()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "No target was chosen: tick at least one to build for.",
            "invalid_choice": "%(value)s is no target.",
        },
    )
    flags = FlagsField(
        required=False,
        initial=DEFAULT_FLAGS,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "size": 36,
                "spellcheck": "false",
                "autocomplete": "off",
                "title": "-O levels, floating-point and unrolling options, -mcumode,"
                " -mllvm=-amdgpu-…, -DNAME=value",
            }
        ),
    )
