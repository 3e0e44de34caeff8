"""The parameters of a comparison of revisions."""

from __future__ import annotations

from django import forms

from codegen_app.tracking.compare_revisions.comparison import STATUS_NAMES, Grouping
from codegen_app.web.forms.query import Number, QueryForm, Text
from scheduler.track.compared_series import CompareSettings


class RevisionsForm(QueryForm):
    """Both sides (``compare_revisions.sides``), their repository, the grouping of
    geometric means, the least effect; for the rows: status, words of their names, group, and the
    start of the list. ``find``: the search text for sides."""

    before = Text()
    after = Text()
    repository = Text()
    group = forms.ChoiceField(required=False, choices=[(by.value, by.value) for by in Grouping])
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
        return Grouping(self.cleaned_data.get("group") or Grouping.GRAPH)

    @property
    def settings(self) -> CompareSettings:
        least = self.cleaned_data.get("least_effect")
        return CompareSettings() if least is None else CompareSettings(least_effect=least)
