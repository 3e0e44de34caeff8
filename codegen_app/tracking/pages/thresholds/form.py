"""The thresholds of a series."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms

from codegen_app.tracking.queries.series_rules import SeriesRules
from codegen_app.tracking.services.thresholds import Proposal
from codegen_app.web.forms.query import Number, QueryForm

_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(min|h|d|w)")
_UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LONGEST = timedelta(days=3650)


class DurationField(forms.CharField):
    """``36h``, ``7d`` or ``2w`` as a ``timedelta``; None if empty."""

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value) or "").strip()[:40]
        if not text:
            return None
        match = _DURATION.fullmatch(text)
        length = float(match[1]) * _UNITS[match[2]] if match else timedelta(0)
        if not timedelta(0) < length <= _LONGEST:
            raise forms.ValidationError(
                "%(text)s is not a duration. Examples: 36h, 7d, 2w; at most ten years.",
                params={"text": text},
            )
        return length

    def prepare_value(self, value: Any) -> Any:
        return format_duration(value) if isinstance(value, timedelta) else value


def format_duration(length: timedelta) -> str:
    """Format a duration as the field accepts it: ``7d``, ``36h``, ``90min``."""
    for name, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1))):
        if length % size == timedelta(0):
            return f"{length // size}{name}"
    return f"{length / timedelta(minutes=1):g}min"


class ThresholdsQueryForm(QueryForm):
    """A change at which a baseline may be set, and whether a proposal is tried."""

    baseline = Number()


class ThresholdsForm(forms.Form):
    """The least change, muting, and when data count as missing."""

    least_effect = forms.FloatField(
        label="Minimum effect, % of the level",
        required=False,
        min_value=0.1,
        max_value=100,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "placeholder": "default"}),
        error_messages={
            "invalid": "Enter a percentage such as 2, or leave empty for the default.",
            "min_value": "Must be at least 0.1%%.",
            "max_value": "Must be at most 100%%.",
        },
    )
    stale_after = DurationField(
        label="Missing data after",
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "automatic, or 36h, 7d, 2w"}),
    )
    muted = forms.BooleanField(label="Muted: detect changes, raise no alerts", required=False)
    at = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    @classmethod
    def from_settings(cls, rules: SeriesRules, at: datetime | None) -> ThresholdsForm:
        """Return a form filled with the thresholds in effect."""
        effect = rules.least_effect
        initial = {
            "least_effect": None if effect is None else float(f"{effect * 100:.6g}"),
            "stale_after": rules.stale_after,
            "muted": rules.muted,
            "at": at,
        }
        return cls(initial=initial)

    def proposed(self) -> Proposal:
        values = self.cleaned_data
        effect, at = values["least_effect"], values["at"]
        return Proposal(
            least_effect=None if effect is None else effect / 100,
            muted=values["muted"],
            stale_after=values["stale_after"],
            begins=(at,) if at else (),
        )


class BaselineForm(forms.Form):
    """The start of a new level."""

    at = forms.DateTimeField(
        label="From",
        widget=forms.TextInput(attrs={"placeholder": "2026-11-20 14:00"}),
        error_messages={
            "required": "Enter a date.",
            "invalid": "Enter a date, and optionally a time: 2026-11-20 14:00 (UTC).",
        },
    )


def parse_reason(data: Mapping[str, str]) -> str:
    return data.get("why", "").strip()
