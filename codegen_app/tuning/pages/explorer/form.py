"""The parameters of an explorer's plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms

from codegen_app.tuning.pages.explorer.builder import BEST, CELLS, GridQuery

#: Axes that are not parameters: the order of the trials, seconds of the run, the modelled time
#: beside a measured one.
TRIED, SECONDS, MODELLED = "tried", "seconds", "modelled"
_TITLES = {TRIED: "trial order", SECONDS: "seconds of the run", MODELLED: "modelled time"}
Choices = Sequence[tuple[str, str]]


class ExplorerForm(forms.Form):
    """``x`` and ``colour`` of the trials' plot; ``across``, ``down`` and ``cell`` of the table of
    two parameters; ``y`` if there are measured and modelled ``times``, ``of`` if there are several
    ``nodes``. Invalid values are reported and ignored."""

    of = forms.ChoiceField(label="Node", required=False)
    x = forms.ChoiceField(label="X", required=False)
    y = forms.ChoiceField(label="Y", required=False)
    colour = forms.ChoiceField(required=False)
    across = forms.ChoiceField(required=False)
    down = forms.ChoiceField(required=False)
    cell = forms.ChoiceField(label="Cells show", required=False)

    def __init__(
        self,
        data: Mapping[str, str],
        parameters: Sequence[str],
        axes: Sequence[str] = (TRIED,),
        times: Sequence[str] = (),
        nodes: Sequence[str] = (),
    ) -> None:
        names = [(name, name) for name in parameters]
        choices: dict[str, Choices] = {
            "of": [(name, name) for name in nodes],
            "x": [*((axis, _TITLES[axis]) for axis in axes), *names],
            "y": [(name, name) for name in times],
            "colour": [("", "none"), *names],
            "across": [("", "most important"), *names],
            "down": [("", "second most important"), *names],
            "cell": [(name, f"{name} time") for name in CELLS],
        }
        first = {name: pairs[0][0] for name, pairs in choices.items() if pairs}
        super().__init__({name: data.get(name) or first.get(name, "") for name in choices})
        for name, pairs in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = list(pairs)
            field.error_messages["invalid_choice"] = _NONE[name]
        self.full_clean()
        self._first = first
        self.has_times, self.has_nodes = len(times) > 1, len(nodes) > 1
        self.has_parameters = len(parameters) > 1

    def chosen(self, name: str) -> str:
        """Return the requested choice; the first one if it is missing or invalid."""
        return str(self.cleaned_data.get(name) or self._first.get(name, ""))

    @property
    def asked(self) -> GridQuery:
        """Return the request for the table of two parameters."""
        return GridQuery(self.chosen("across"), self.chosen("down"), self.chosen("cell") or BEST)


_NONE = {
    **dict.fromkeys(("x", "colour", "across", "down"), "No varying parameter is named %(value)s."),
    "y": "Unknown time: %(value)s.",
    "of": "The run has no candidates for %(value)s.",
    "cell": "Unknown cell value: %(value)s.",
}
