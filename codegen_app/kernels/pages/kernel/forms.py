"""Requests of a kernel's builds and modellings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from codegen_app.kernels.modelling.requests import boards
from codegen_app.kernels.pages.kernel.query import BuildRow
from codegen_app.platform.served_targets import served_target_names
from codegen_app.web.forms.fields import DEFAULT_FLAGS_TEXT, FlagsField, SizesField, TargetsField
from scheduler.build.recipe import can_build
from scheduler.ir.bindings import format_bindings
from scheduler.targets import Board, find


class BuildForm(forms.Form):
    """Targets and flags; the targets are those for which a compiler builds such sources."""

    target = TargetsField(
        label="Build for", none_chosen="No target is selected: select at least one."
    )
    flags = FlagsField(
        required=False,
        initial=DEFAULT_FLAGS_TEXT,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "size": 36,
                "spellcheck": "false",
                "autocomplete": "off",
                "title": "-O levels; for HIP sources also floating-point and unrolling options and"
                " -DNAME=value; for AMD GPUs also -mcumode and -mllvm=-amdgpu-…",
            }
        ),
    )

    def __init__(self, source_file: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        field = self.fields["target"]
        assert isinstance(field, TargetsField)
        self.target_names = [
            name for name in served_target_names() if can_build(find(name), source_file)
        ]
        field.choices = [(name, name) for name in self.target_names]


def rebuild_form(source_file: str, build: BuildRow | None) -> BuildForm:
    """Return a form that requests the displayed build again, with its flags to edit."""
    form = BuildForm(source_file)
    if build is not None:
        form.initial = {"target": [build.target], "flags": " ".join(build.flags)}
    return form


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
