"""Request builds of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from django import forms

from codegen_app.platform.served_targets import served_target_names
from codegen_app.web.forms.fields import DEFAULT_FLAGS_TEXT, FlagsField, TargetsField
from scheduler.build.recipe import can_build
from scheduler.targets import find


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
        field.choices = [
            (name, name) for name in served_target_names() if can_build(find(name), source_file)
        ]


class ShownBuild(Protocol):
    """A build displayed on a page."""

    @property
    def target(self) -> str: ...
    @property
    def flags(self) -> tuple[str, ...]: ...


def rebuild_form(source_file: str, build: ShownBuild | None) -> BuildForm:
    """Return a form that requests the displayed build again, with its flags to edit."""
    form = BuildForm(source_file)
    if build is not None:
        form.initial = {"target": [build.target], "flags": " ".join(build.flags)}
    return form
