"""Filters of the list of alerts, and triage actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms

from codegen_app.tracking.alerting.triage import MAX_NOTE_LENGTH
from codegen_app.tracking.models import AlertKind, AlertState, Relation
from codegen_app.tracking.pages.alerts.query import ALL, OPEN, STATES, AlertFilter
from codegen_app.web.forms.fields import RepeatedField
from codegen_app.web.forms.query import Number, OptionalChoiceField, QueryForm, Text

ASSIGN, MINE, NOTE, UNLINK = "assign", "mine", "note", "unlink"


class AlertsForm(QueryForm):
    """A state, a kind, an assignee, words, and where the list begins."""

    state = OptionalChoiceField(STATES)
    kind = OptionalChoiceField(AlertKind.values)
    assignee = Text()
    q = Text()
    below = Number()
    above = Number()

    def alert_filter(self) -> AlertFilter:
        return AlertFilter(
            state=self.text("state") or OPEN,
            kind=self.text("kind"),
            assignee=self.text("assignee").strip(),
            query=self.text("q").strip(),
            below=self.number("below"),
            above=self.number("above"),
        )


class FeedForm(QueryForm):
    """The alerts of a feed: a state, a kind, words of a series; all optional."""

    state = OptionalChoiceField((ALL, OPEN, *AlertState.values))
    kind = OptionalChoiceField(AlertKind.values)
    q = Text()

    def clean_state(self) -> str:
        """Return a valid state; "" for any."""
        state = self.text("state")
        return "" if state == ALL else state


class AlertForm(QueryForm):
    """The start of the list of changes."""

    start = Number()


class TriageForm(forms.Form):
    """A triage action on alerts: a state, ``assign`` (to an account by name, "" for no account),
    ``mine``, ``note``, a link to another alert by its number, or ``unlink``."""

    alert = RepeatedField(keys=True)
    do = forms.ChoiceField(
        choices=[
            *((state, state) for state in AlertState.values),
            *((relation, relation) for relation in Relation.values),
            *((name, name) for name in (ASSIGN, MINE, NOTE, UNLINK)),
        ],
        error_messages={
            "required": "Select an action.",
            "invalid_choice": "%(value)s is not an action for alerts.",
        },
    )
    note = forms.CharField(
        required=False,
        max_length=MAX_NOTE_LENGTH,
        error_messages={"max_length": "A note has at most %(limit_value)d characters."},
    )
    assignee = forms.CharField(required=False, max_length=150)
    to = forms.CharField(required=False, max_length=20)

    def clean_to(self) -> int | None:
        """Return the other alert's number, given with or without #."""
        number = str(self.cleaned_data.get("to", "")).strip().removeprefix("#")
        if not number:
            return None
        if not number.isdecimal() or len(number) > 18:
            raise forms.ValidationError(
                "%(given)s is not an alert number.", params={"given": self.cleaned_data["to"]}
            )
        return int(number)

    def clean(self) -> dict[str, Any]:
        """Require the other alert's number for a link."""
        values: Mapping[str, Any] = super().clean() or {}
        if values.get("do") in Relation.values and values.get("to") is None and not self.errors:
            raise forms.ValidationError("Enter the number of the other alert.")
        return dict(values)

    @property
    def line(self) -> str:
        return next((str(error) for errors in self.errors.values() for error in errors), "")


class UndoForm(forms.Form):
    """The action to undo."""

    act = forms.UUIDField(error_messages={"required": "Select the action to undo."})

    def key(self) -> UUID | None:
        found: UUID | None = self.cleaned_data.get("act") if self.is_valid() else None
        return found
