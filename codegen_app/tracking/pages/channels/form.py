"""Channels that receive alerts."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import validate_email

from codegen_app.tracking.models import AlertKind, Channel, ChannelKind, DeliveryState
from codegen_app.tracking.notifying import addresses
from codegen_app.tracking.pages.channels.query import WEEKDAYS
from codegen_app.web.forms.query import OptionalChoiceField, QueryForm
from scheduler.errors import UserError

MAX_EMAILS = 20
_KINDS = [
    (ChannelKind.WEBHOOK.value, "webhook: signed JSON POST"),
    (ChannelKind.SLACK.value, "Slack: incoming webhook"),
    (ChannelKind.TEAMS.value, "Microsoft Teams: webhook of a workflow"),
    (ChannelKind.EMAIL.value, "e-mail"),
]


_WEEKDAYS = [
    ("", "at each event"),
    *((str(number), f"weekly digest by e-mail: {day}") for number, day in enumerate(WEEKDAYS)),
]


DELIVERY_STATES = [("", "all"), *DeliveryState.choices]


class DeliveriesForm(QueryForm):
    """The deliveries to show."""

    state = OptionalChoiceField(DeliveryState.values)


class ChannelForm(forms.Form):
    """A name, a destination, and a filter of alerts."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "kernel team"}),
        error_messages={
            "required": "Enter a name.",
            "max_length": "At most %(limit_value)d characters.",
        },
    )
    kind = forms.ChoiceField(
        label="Type", choices=_KINDS, error_messages={"required": "Choose a type."}
    )
    address = forms.CharField(
        label="Destination: a URL, or e-mail addresses, one per line",
        max_length=5000,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": "https://hooks.example.org/kiln",
                "spellcheck": "false",
            }
        ),
        error_messages={"required": "Enter a URL or e-mail addresses."},
    )
    alerts = forms.MultipleChoiceField(
        label="Alerts",
        choices=AlertKind.choices,
        initial=[AlertKind.REGRESSION, AlertKind.MISSING, AlertKind.MACHINE],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Select at least one kind of alert."},
    )
    weekday = forms.TypedChoiceField(
        label="When",
        choices=_WEEKDAYS,
        required=False,
        coerce=int,
        empty_value=None,
    )
    hour = forms.IntegerField(
        label=f"Hour of the weekly digest ({settings.TIME_ZONE})",
        required=False,
        initial=8,
        min_value=0,
        max_value=23,
        error_messages={
            "invalid": "Enter an hour from 0 to 23.",
            "min_value": "Enter an hour from 0 to 23.",
            "max_value": "Enter an hour from 0 to 23.",
        },
    )
    search = forms.CharField(
        label="Only series with all of these words in problem or device (empty: all series)",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "attention H200"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )

    def clean_search(self) -> str:
        """Return the words with single spaces between them."""
        return " ".join(str(self.cleaned_data["search"]).split())

    def clean_hour(self) -> int:
        """Return the hour; the default if the field is empty, as for channels without digests."""
        hour: int | None = self.cleaned_data["hour"]
        return 8 if hour is None else hour

    def clean(self) -> dict[str, Any]:
        """Check that the address and the time fit the kind."""
        values = self.cleaned_data
        if values.get("weekday") is not None and values.get("kind") != ChannelKind.EMAIL:
            self.add_error("weekday", "Only e-mail channels have weekly digests.")
        if "address" in values and "kind" in values:
            try:
                values["address"] = _parse_destination(values["kind"], values["address"])
            except UserError as error:
                self.add_error("address", f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return values


class EditChannelForm(ChannelForm):
    """The same for an existing channel; its kind is fixed."""

    def __init__(self, row: Channel, data: Any = None) -> None:
        super().__init__(data, initial={name: getattr(row, name) for name in self.base_fields})
        self.fields["kind"].disabled = True
        self.fields["kind"].widget = forms.HiddenInput()


def _parse_destination(kind: str, text: str) -> str:
    """Return a channel's URL, or its e-mail addresses, one a line. Raises ``UserError``."""
    if ChannelKind(kind).is_posted:
        url = text.strip()
        host_name = addresses.parse(url).host
        try:
            host = ip_address(host_name)
        except ValueError:
            return url  # a name: its addresses are checked at each use
        if not addresses.is_allowed(host, settings.WEBHOOK_NETWORKS):
            raise UserError(
                f"{host} is not a public address and not in an allowed network"
                " (KILN_WEBHOOK_NETWORKS)"
            )
        return url
    emails = list(dict.fromkeys(text.replace(",", " ").split()))
    if not 1 <= len(emails) <= MAX_EMAILS:
        raise UserError(f"enter 1 to {MAX_EMAILS} e-mail addresses")
    for email in emails:
        try:
            validate_email(email)
        except forms.ValidationError:
            raise UserError(f"{email!r} is not an e-mail address") from None
        if not email.isascii():
            raise UserError(f"{email!r}: only ASCII characters are supported")
    return "\n".join(emails)
