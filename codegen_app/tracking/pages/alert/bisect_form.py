"""How far a bisection may go, and by what means."""

from __future__ import annotations

from django import forms

from codegen_app.tracking.bisecting.walk import DEFAULT_LIMIT, MAX_LIMIT
from codegen_app.tracking.models import BisectionMeans


class BisectForm(forms.Form):
    """The number of revisions that a bisection may request, and who measures them."""

    limit = forms.IntegerField(min_value=1, max_value=MAX_LIMIT, initial=DEFAULT_LIMIT)
    means = forms.ChoiceField(choices=BisectionMeans.choices)
