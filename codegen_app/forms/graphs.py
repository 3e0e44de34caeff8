"""Importing a model."""

from __future__ import annotations

from pathlib import Path

from django import forms


class ImportGraphForm(forms.Form):
    """A model's file, and what to call it: its own name where that is left out."""

    file = forms.FileField(
        widget=forms.FileInput(attrs={"accept": ".pt2"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )
    name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(
            attrs={"placeholder": "the file\N{RIGHT SINGLE QUOTATION MARK}s name"}
        ),
    )

    def chosen_name(self) -> str:
        """What the graph is to be called."""
        given: str = self.cleaned_data["name"]
        return given or Path(self.cleaned_data["file"].name or "graph").stem[:200]
