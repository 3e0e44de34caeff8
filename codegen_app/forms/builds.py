"""Asking for builds of a kernel."""

from __future__ import annotations

from django import forms

from codegen_app.forms.fields import DEFAULT_FLAGS, FlagsField, TargetsField


class BuildForm(forms.Form):
    """Targets and flags."""

    target = TargetsField(
        label="Build for", none_chosen="No target was chosen: tick at least one to build for."
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
