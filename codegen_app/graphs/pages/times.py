"""The bucket whose times a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms

from codegen_app.tuning.queries.serving import Bucket
from codegen_app.web.forms.query import HiddenParams, hidden_params


class TimesForm(forms.Form):
    """``?times=``: the name of a bucket; by default the first one. ``others`` are the page's other
    parameters, submitted with the form."""

    times = forms.ChoiceField(
        label="Times from",
        required=False,
        error_messages={"invalid_choice": "No measurements on %(value)s."},
    )

    def __init__(self, params: Mapping[str, str], buckets: Sequence[Bucket], *others: str) -> None:
        names = [bucket.name for bucket in buckets]
        super().__init__({"times": params.get("times") or next(iter(names), "")})
        self.kept: HiddenParams = hidden_params(params, others)
        field = self.fields["times"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in names]
