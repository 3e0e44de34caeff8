"""Which alerts a feed has."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms

from codegen_app.forms.address import AddressForm, Text
from codegen_app.models import AlertKind, AlertState
from codegen_app.selectors.alert_feed import OPEN

ALL = "all"


class FeedForm(AddressForm):
    """A state, a kind, words of a series; all of them may be left out."""

    state = Text()
    kind = Text()
    q = Text()

    def clean_state(self) -> str:
        """One that there is; "" for any."""
        given = _one_of(self.text("state"), (ALL, OPEN, *AlertState.values))
        return "" if given == ALL else given

    def clean_kind(self) -> str:
        """One that there is; "" for any."""
        return _one_of(self.text("kind"), AlertKind.values)


def _one_of(given: str, known: Iterable[str]) -> str:
    if given and given not in known:
        raise forms.ValidationError(
            "%(given)s is none: there are %(known)s.",
            params={"given": given, "known": ", ".join(known)},
        )
    return given
