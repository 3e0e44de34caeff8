"""Upload an external kernel."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.template.defaultfilters import filesizeformat

from codegen_app.kernels.services import external_kernels
from scheduler.cycles.launches.parser import MOST_BYTES, read_launch
from scheduler.errors import UserError
from scheduler.targets import Board


class UploadKernelForm(forms.Form):
    """A code object or listing, its launch as a file or as text, and the board."""

    file = forms.FileField(
        label="Kernel",
        widget=forms.FileInput(attrs={"accept": ".hsaco,.co,.o,.s,.amdgcn"}),
        error_messages={
            "required": "Choose a code object or a listing.",
            "empty": "The file is empty.",
        },
    )
    launch_file = forms.FileField(
        label="Launch",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".json"}),
        error_messages={"empty": "The launch is empty."},
    )
    launch = forms.CharField(
        label="or as text",
        required=False,
        max_length=MOST_BYTES,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
    )
    board = forms.ChoiceField(
        error_messages={"invalid_choice": "%(value)s is not a supported board."}
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._boards = {
            f"{board.target} {board.name}": board for board in external_kernels.boards()
        }
        field = self.fields["board"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            (key, f"{board.name} ({board.target})") for key, board in self._boards.items()
        ]
        field.initial = next((key for key in self._boards if key.startswith("gfx942")), None)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        limit = settings.FOREIGN_KERNEL_MAX_BYTES
        if file.size > limit:
            raise forms.ValidationError(f"The file is larger than {filesizeformat(limit)}.")
        return file

    def clean(self) -> dict[str, Any]:
        """Require exactly one valid launch, from the file or the text."""
        data = super().clean() or {}
        file = data.get("launch_file")
        text = (data.get("launch") or "").strip()
        field = "launch" if file is None else "launch_file"
        if file is not None and text:
            self.add_error(field, "Give the launch as a file or as text, not both.")
        elif file is None and not text:
            self.add_error(field, "A launch is required: choose a file or enter it as text.")
        elif file is not None and file.size > MOST_BYTES:
            self.add_error(field, f"The launch is larger than {filesizeformat(MOST_BYTES)}.")
        else:
            try:
                data["launch"] = file.read().decode("utf-8") if file is not None else text
                read_launch(data["launch"])
            except UnicodeDecodeError:
                self.add_error(field, "The launch is not UTF-8 text.")
            except UserError as error:
                self.add_error(field, str(error))
        return data

    def chosen(self) -> Board:
        return self._boards[self.cleaned_data["board"]]
