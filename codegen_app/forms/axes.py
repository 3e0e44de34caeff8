"""The axes of a node's chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms

from codegen_app.forms.address import Kept, kept

#: An axis that is no parameter.
LANGUAGE_AXIS = "language"


class AxesForm(forms.Form):
    """X and colour, among the parameters that differ; an axis that is none is left out. ``others``
    are the page's other parameters, which are sent along."""

    x = forms.ChoiceField(label="X", required=False)
    colour = forms.ChoiceField(required=False)

    def __init__(self, given: Mapping[str, str], axes: Sequence[str], *others: str) -> None:
        chosen = {name: given.get(name, "") for name in ("x", "colour")}
        super().__init__({**chosen, "x": chosen["x"] or axes[0]})
        self.kept: Kept = kept(given, others)
        for name, choices in (("x", axes), ("colour", axes[1:])):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            none = [("", "none")] if name == "colour" else []
            field.choices = [*none, *((choice, choice) for choice in choices)]
            field.error_messages["invalid_choice"] = "No parameter %(value)s differs."
        self.parameters = tuple(name for name in axes[1:] if name != LANGUAGE_AXIS)
        self.full_clean()
        self.axis_x: str = self.cleaned_data.get("x") or axes[0]
        self.axis_colour: str = self.cleaned_data.get("colour") or ""
