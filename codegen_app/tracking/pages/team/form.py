"""Whose page it is, and a budget."""

from __future__ import annotations

from typing import Any

from django import forms

from codegen_app.tracking.models import Budget, BudgetStatistic
from codegen_app.tracking.pages.rules.form import PatternsForm, pattern_texts
from codegen_app.tracking.services.budgets import BudgetDraft
from codegen_app.web.forms.query import QueryForm, Text


class TeamForm(QueryForm):
    """The person; by default the reader."""

    person = Text()


class BudgetForm(PatternsForm):
    """A name, the series, a statistic of their levels, and its limit."""

    field_order = ("name", "statistic", "limit", "unit", "due")

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "attention on H200"}),
        error_messages={
            "required": "Enter a name.",
            "max_length": "At most %(limit_value)d characters.",
        },
    )
    statistic = forms.ChoiceField(
        label="Statistic of the current levels",
        choices=BudgetStatistic.choices,
        error_messages={
            "required": "Select a statistic.",
            "invalid_choice": "%(value)s is not a statistic of budgets.",
        },
    )
    limit = forms.FloatField(
        label="Limit",
        min_value=1e-12,
        max_value=1e15,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "placeholder": "250"}),
        error_messages={
            "required": "Enter a number above 0.",
            "invalid": "Enter a number above 0.",
            "min_value": "Must be above 0.",
            "max_value": "Must be at most 10^15.",
        },
    )
    unit = forms.CharField(
        label="Unit of the limit, of time or as sent with the points",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "us"}),
        error_messages={"max_length": "At most %(limit_value)d characters."},
    )
    due = forms.DateField(
        label="Due",
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "2026-12-31"}),
        error_messages={"invalid": "Enter a date such as 2026-12-31, or leave empty."},
    )

    @classmethod
    def from_budget(cls, row: Budget) -> BudgetForm:
        """Return a form filled with a budget."""
        columns = {name: getattr(row, name) for name in cls.field_order}
        return cls(initial={**columns, "limit": f"{row.limit:.12g}", **pattern_texts(row)})

    @property
    def budget_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.field_order]

    def draft(self) -> BudgetDraft:
        values: dict[str, Any] = self.cleaned_data
        return BudgetDraft(
            name=values["name"],
            patterns=self.patterns(),
            statistic=BudgetStatistic(values["statistic"]),
            limit=values["limit"],
            unit=values["unit"],
            due=values["due"],
        )
