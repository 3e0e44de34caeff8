"""Request the modelling of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from codegen_app.kernels.modelling.requests import boards
from codegen_app.web.forms.fields import SizesField
from scheduler.ir.bindings import format_bindings
from scheduler.targets import Board


class ModelForm(forms.Form):
    """Checkboxes for boards, and the sizes; ``symbols`` are those of the problem, none if all sizes
    are fixed, ``node`` the scheduled node that calls the kernel."""

    board = forms.MultipleChoiceField(
        label="Model on",
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "No board is selected: select at least one.",
            "invalid_choice": "%(value)s is not a supported board.",
        },
    )
    sizes = SizesField(required=False)
    node = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        source_file: str,
        symbols: Mapping[str, Mapping[str, Any]],
        data: Mapping[str, Any] | None = None,
        *,
        node: int | None = None,
    ) -> None:
        hints = {name: symbol["hint"] for name, symbol in symbols.items()}
        super().__init__(data, initial={"sizes": format_bindings(hints), "node": node})
        self._boards = {f"{board.target} {board.name}": board for board in boards(source_file)}
        field = self.fields["board"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [
            (key, f"{board.name} ({board.target})") for key, board in self._boards.items()
        ]
        if not symbols:
            del self.fields["sizes"]

    @property
    def offered(self) -> bool:
        """Whether there is any board for such sources."""
        return bool(self._boards)

    def chosen(self) -> list[Board]:
        """Return the ticked boards."""
        return [self._boards[key] for key in self.cleaned_data["board"]]
