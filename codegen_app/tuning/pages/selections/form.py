"""Import selections from a file."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from codegen_app.web.forms.fields import ReasonForm


class ImportSelectionsForm(ReasonForm):
    """An exported file, and the reason for its selections."""

    file = forms.FileField(
        widget=forms.FileInput(attrs={"accept": ".json", "aria-label": "File"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )
    field_order = ("file", "why")

    def clean_file(self) -> UploadedFile:
        """Require a file that fits into memory."""
        file: UploadedFile = self.cleaned_data["file"]
        limit = settings.SELECTIONS_FILE_MAX_BYTES
        if file.size is None or file.size > limit:
            raise forms.ValidationError(f"The file is larger than {limit >> 20} MiB.")
        return file
