"""Which revisions are compared, and what is shown of it."""

from __future__ import annotations

from django import forms

from codegen_app.forms.query import Number, QueryForm, Text
from codegen_app.selectors.compare_revisions.comparison import STATUS_NAMES, Grouping
from scheduler.track.compare import CompareSettings


class RevisionsForm(QueryForm):
    """Both sides (``selectors.comparing.sides``), of which repository, what geometric means are
    taken by, what counts as slower; of the rows: their status, words of their names, their group,
    and where the list begins. ``find``: what sides are looked for by."""

    before = Text()
    after = Text()
    repository = Text()
    group = forms.ChoiceField(required=False, choices=[(one.value, one.value) for one in Grouping])
    least_effect = forms.FloatField(required=False, min_value=0, max_value=0.5)
    status = forms.ChoiceField(
        required=False, choices=[(name, name) for name in STATUS_NAMES.values()]
    )
    search = Text()
    within = Text()
    start = Number()
    find = Text()

    @property
    def grouping(self) -> Grouping:
        """What means are taken by."""
        return Grouping(self.cleaned_data.get("group") or Grouping.GRAPH)

    @property
    def settings(self) -> CompareSettings:
        """Of the comparison."""
        least = self.cleaned_data.get("least_effect")
        return CompareSettings() if least is None else CompareSettings(least_effect=least)
