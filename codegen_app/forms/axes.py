"""The axes of a node's chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms

from codegen_app.forms.address import Kept, kept

#: An axis that is no parameter.
LANGUAGE_AXIS = "language"
#: Times as axes: what was measured in the bucket, what the model says.
MEASURED, MODELLED = "measured", "modelled"


class AxesForm(forms.Form):
    """X and colour, among the parameters that differ, and Y among the ``times`` that there are
    (``MEASURED``, ``MODELLED``), the second of which can be X, too; an axis that is none is left
    out. ``others`` are the page's other parameters, which are sent along."""

    x = forms.ChoiceField(label="X", required=False)
    y = forms.ChoiceField(label="Y", required=False)
    colour = forms.ChoiceField(required=False)

    def __init__(
        self,
        given: Mapping[str, str],
        axes: Sequence[str],
        *others: str,
        times: Sequence[str] = (MEASURED,),
    ) -> None:
        chosen = {name: given.get(name, "") for name in ("x", "y", "colour")}
        first = {"x": axes[0], "y": times[0]}
        super().__init__({name: value or first.get(name, "") for name, value in chosen.items()})
        self.kept: Kept = kept(given, others)
        of_time = [name for name in times if name == MODELLED]
        for name, choices in (("x", [*axes, *of_time]), ("y", times), ("colour", axes[1:])):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            none = [("", "none")] if name == "colour" else []
            field.choices = [*none, *((choice, choice) for choice in choices)]
            field.error_messages["invalid_choice"] = (
                "No time is %(value)s." if name == "y" else "No parameter %(value)s differs."
            )
        self.parameters = tuple(name for name in axes[1:] if name != LANGUAGE_AXIS)
        self.full_clean()
        self.axis_x: str = self.cleaned_data.get("x") or axes[0]
        self.axis_y: str = self.cleaned_data.get("y") or times[0]
        self.has_times = len(times) > 1
        self.axis_colour: str = self.cleaned_data.get("colour") or ""
