"""The parameters of the list of series and of a history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from codegen_app.tracking.pages.history.query import MAX_BESIDE
from codegen_app.tracking.pages.series.query import FILTERS, PERIODS, Filters
from codegen_app.tracking.queries.histories import Cursor
from codegen_app.web.forms.fields import RepeatedField
from codegen_app.web.forms.query import Number, QueryForm, Text
from scheduler.errors import UserError
from scheduler.results.points import fields

TIME, REVISION = "time", "revision"
LINEAR, LOG, RELATIVE = "linear", "log", "relative"


class DefaultChoiceField(forms.ChoiceField):
    """One of a few words; the first by default."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__(
            required=False,
            choices=[(name, name) for name in self.names],
            error_messages={
                "invalid_choice": f"must be one of: {', '.join(filter(None, self.names))}."
            },
        )

    def clean(self, value: Any) -> str:
        return super().clean(value) or self.names[0]


class KeysField(forms.CharField):
    """Row numbers separated by commas."""

    def __init__(self, most: int) -> None:
        super().__init__(required=False, max_length=500)
        self.most = most

    def clean(self, value: Any) -> list[int]:
        parts = [part.strip() for part in super().clean(value).split(",") if part.strip()]
        if not all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in parts):
            raise forms.ValidationError("must be series numbers separated by commas.")
        if len(parts) > self.most:
            raise forms.ValidationError(f"at most {self.most} additional series can be shown.")
        return list(dict.fromkeys(map(int, parts)))


class SeriesForm(QueryForm):
    """Words and filters of the list; ``after``: where its page begins; ``together``: series to show
    on one chart."""

    words = Text()
    metric = Text()
    device = Text()
    target = Text()
    owner = Text()
    problem = Number()
    changed = Number()
    suspected = forms.ChoiceField(required=False, choices=[("1", "1")])
    after = Text()
    together = RepeatedField(keys=True)

    def clean_after(self) -> Cursor | None:
        text = self.cleaned_data["after"]
        try:
            return Cursor.parse(text) if text else None
        except UserError as error:
            raise forms.ValidationError(str(error)) from None

    def clean_changed(self) -> int:
        """Return one of the offered periods."""
        days: int = self.cleaned_data["changed"] or 0
        if days not in (0, *PERIODS):
            known = ", ".join(map(str, PERIODS))
            raise forms.ValidationError(f"must be a number of days: {known}.")
        return days

    @property
    def filters(self) -> Filters:
        return Filters(
            words=self.text("words"),
            exact={name: self.text(name) for name in FILTERS},
            problem=self.number("problem") or 0,
            changed=self.number("changed") or 0,
            suspected=bool(self.text("suspected")),
        )


class HistoryForm(QueryForm):
    """The axes, without ``x`` the one that suits the points; ``with``: other series than the page's
    own; ``until``: the time of the latest point shown; ``from`` and ``to``: the chart's zoom, which
    it reads itself; ``change``: the change whose neighbourhood is shown alone; ``branch``: the
    branch whose points are shown with the history, or ``ALL_BRANCHES``."""

    x = DefaultChoiceField(("", TIME, REVISION))
    scale = DefaultChoiceField((LINEAR, LOG, RELATIVE))
    until = Text()
    change = Number()
    branch = Text()

    def clean_until(self) -> Any:
        text = self.cleaned_data["until"]
        try:
            return fields.as_timestamp(text, "until") if text else None
        except UserError as error:
            raise forms.ValidationError(str(error)) from None

    @property
    def beside(self) -> list[int]:
        found: list[int] = self.cleaned_data.get("with", [])
        return found


# ``with`` is a Python keyword and cannot be an attribute name.
HistoryForm.base_fields["with"] = KeysField(MAX_BESIDE)


class EmbedForm(QueryForm):
    """The style of an embedded plot; ``days``: how far back the badge looks for changes."""

    theme = DefaultChoiceField(("light", "dark"))
    days = Number()
