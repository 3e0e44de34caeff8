"""How far a bisection may go."""

from __future__ import annotations

from django import forms

from codegen_app.tracking.bisecting.walk import DEFAULT_LIMIT, MAX_LIMIT


class BisectForm(forms.Form):
    """The number of revisions that a bisection may request."""

    limit = forms.IntegerField(min_value=1, max_value=MAX_LIMIT, initial=DEFAULT_LIMIT)
