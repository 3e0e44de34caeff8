"""Import a model."""

from __future__ import annotations

from pathlib import Path

from django import forms

from scheduler.frontends.archive import default_name


class ImportGraphForm(forms.Form):
    """A model's file, the model to import if it has several, and a name: by default the file's own
    name, followed by the model's."""

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

    model_name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "only if the file contains several models"}),
    )

    def chosen_name(self) -> str:
        """Return the name of the graph."""
        given: str = self.cleaned_data["name"]
        stem = Path(self.cleaned_data["file"].name or "graph").stem
        return given or default_name(stem, self.cleaned_data["model_name"])[:200]
