"""Fields that parse lines of text into the values that services take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms

from codegen_app.platform.served_targets import served_target_names
from scheduler.build.flags import DEFAULT_FLAGS, Flags, parse_flags
from scheduler.errors import UserError
from scheduler.tuning.budget import parse_seconds

_SIZE = re.compile(r"(\w+)=(\d{1,9})")


class TimeField(forms.CharField):
    """``60s``, ``5m`` or ``1h`` as seconds; None if empty."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        try:
            return parse_seconds(text)
        except UserError:
            raise forms.ValidationError(
                "%(text)s is not a duration. Examples: 60s, 5m, 1h.", params={"text": text}
            ) from None


class SizesField(forms.CharField):
    """``s0=16 s1=32`` as values of the symbolic sizes."""

    def to_python(self, value: Any) -> Any:
        sizes = {}
        for part in (super().to_python(value) or "").replace(",", " ").split():
            match = _SIZE.fullmatch(part)
            if match is None:
                raise forms.ValidationError(
                    "%(part)s is not a size. Enter a symbol and its value, such as s0=16.",
                    params={"part": part},
                )
            sizes[match[1]] = int(match[2])
        return sizes


class FlagsField(forms.CharField):
    """Compiler flags on a line as ``Flags``."""

    def to_python(self, value: Any) -> Any:
        try:
            return parse_flags(super().to_python(value) or "")
        except UserError as error:
            raise forms.ValidationError(str(error)) from None

    def prepare_value(self, value: Any) -> Any:
        return " ".join(value.values) if isinstance(value, Flags) else value


class TargetsField(forms.MultipleChoiceField):
    """Checkboxes for the targets that kernels are generated for here, and ``others``; at least
    one."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, label: str, none_chosen: str, others: Iterable[str] = ()) -> None:
        names = tuple(others)
        super().__init__(
            label=label,
            choices=lambda: [(name, name) for name in (*served_target_names(), *names)],
            error_messages={
                "required": none_chosen,
                "invalid_choice": "%(value)s is not a target.",
            },
        )


DEFAULT_FLAGS_TEXT = " ".join(DEFAULT_FLAGS.values)


class RepeatedField(forms.Field):
    """A repeatable parameter as a list: texts, or keys of rows."""

    widget = forms.MultipleHiddenInput

    def __init__(self, *, keys: bool = False) -> None:
        super().__init__(required=False)
        self._keys = keys

    def to_python(self, value: Sequence[str] | None) -> Any:
        values = list(value or ())
        if not self._keys:
            return values
        if not all(text.isdecimal() and len(text) < 19 for text in values):
            raise forms.ValidationError(
                "%(values)s: row numbers must be integers.", params={"values": ", ".join(values)}
            )
        return [int(text) for text in values]


class ReasonForm(forms.Form):
    """An optional reason."""

    why = forms.CharField(
        label="Reason",
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "Reason", "aria-label": "Reason"}),
        error_messages={"max_length": "A reason has at most %(limit_value)d characters."},
    )
