"""The forms of the import page."""

from __future__ import annotations

from pathlib import Path

from django import forms

from codegen_app.tracking.api_schemas import Parameters
from scheduler.frontends.archive import default_name
from scheduler.frontends.file_sample import SAMPLE_BYTES, Sample

_MAX_FILE_BYTES = 1 << 50


class ImportForm(forms.Form):
    """A file, and what its kind needs: a model's name, or what benchmark results lack."""

    file = forms.FileField(
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
    device = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "NVIDIA H200, unless the file states it"}),
    )
    revision = forms.CharField(
        required=False,
        max_length=100,
        widget=forms.TextInput(
            attrs={"placeholder": "commit or version, unless the file states it"}
        ),
    )
    repository = forms.CharField(required=False, max_length=200)
    branch = forms.CharField(required=False, max_length=200)

    def graph_name(self) -> str:
        """The name of an imported graph: by default the file's, followed by the model's."""
        name: str = self.cleaned_data["name"]
        stem = Path(self.cleaned_data["file"].name or "graph").stem
        return name or default_name(stem, self.cleaned_data["model_name"])[:200]

    def parameters(self) -> Parameters:
        """What the points of the file do not state themselves."""
        names = ("device", "revision", "repository", "branch")
        return Parameters(**{name: self.cleaned_data[name] for name in names})


class SampleForm(forms.Form):
    """The first and last bytes of a file that was chosen and not sent yet."""

    name = forms.CharField(max_length=1000, strip=False)
    size = forms.IntegerField(min_value=0, max_value=_MAX_FILE_BYTES)
    head = forms.FileField(allow_empty_file=True)
    tail = forms.FileField(allow_empty_file=True)

    def sample(self) -> Sample:
        """Return the sample."""
        data = self.cleaned_data
        head, tail = (data[part].read(SAMPLE_BYTES) for part in ("head", "tail"))
        return Sample(data["name"], data["size"], head, tail)
