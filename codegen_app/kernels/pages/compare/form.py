"""The parameters of a comparison of builds."""

from __future__ import annotations

from typing import Any

from django import forms

from codegen_app.kernels.pages.compare.query import MAX_SIDES
from codegen_app.web.forms.fields import RepeatedField
from codegen_app.web.forms.query import Number, QueryForm, Text


class CompareForm(QueryForm):
    """Builds by their keys, or kernels by name (for one target); ``shown``: whose texts are
    shown."""

    build = RepeatedField(keys=True)
    kernel = RepeatedField()
    target = Text()
    shown = Number()

    def clean(self) -> dict[str, Any]:
        """Limit the sides to those that fit side by side."""
        cleaned = super().clean() or {}
        name = "kernel" if cleaned.get("kernel") else "build"
        if not 2 <= len(cleaned.get(name, ())) <= MAX_SIDES:
            raise forms.ValidationError(f"Compare takes two to {MAX_SIDES} builds or kernels.")
        return cleaned
