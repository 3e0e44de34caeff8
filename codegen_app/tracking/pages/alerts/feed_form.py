"""The alerts of a feed."""

from __future__ import annotations

from codegen_app.tracking.models import AlertKind, AlertState
from codegen_app.tracking.queries.alert_feed import OPEN
from codegen_app.web.forms.query import OptionalChoiceField, QueryForm, Text

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
