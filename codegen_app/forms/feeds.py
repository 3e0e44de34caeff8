"""The alerts of a feed."""

from __future__ import annotations

from codegen_app.forms.query import OptionalChoiceField, QueryForm, Text
from codegen_app.models import AlertKind, AlertState
from codegen_app.selectors.alert_feed import OPEN

ALL = "all"


class FeedForm(QueryForm):
    """A state, a kind, words of a series; all optional."""

    state = OptionalChoiceField((ALL, OPEN, *AlertState.values))
    kind = OptionalChoiceField(AlertKind.values)
    q = Text()

    def clean_state(self) -> str:
        """Return a valid state; "" for any."""
        given = self.text("state")
        return "" if given == ALL else given
