"""The parameters of a page's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms

from codegen_app.web.forms.fields import RepeatedField
from codegen_app.web.forms.query import Number, QueryForm, Text
from codegen_app.web.tables import Column, TableQuery, TableQueryError, asked

AS_TSV = "tsv"


class TableForm(QueryForm):
    """``sort`` by a column (``-time``: descending), ``filter`` by conditions and words, ``column``
    for each displayed one, ``start`` of the rows, ``as=tsv`` for all of them as text; ``by`` is the
    default order."""

    sort = Text()
    filter = Text()
    column = RepeatedField()
    start = Number()

    def __init__(
        self, params: Mapping[str, str], columns: Sequence[Column[Any]], by: str = ""
    ) -> None:
        self._columns, self._by = columns, by
        self.asked = asked(columns, by, "", ())
        super().__init__(params)

    def clean(self) -> dict[str, Any]:
        """Report and ignore names that are not the table's columns."""
        cleaned = super().clean() or {}
        query = {
            "sort": str(cleaned.get("sort") or self._by),
            "text": str(cleaned.get("filter", "")),
            "chosen": cleaned.get("column", []),
        }
        without = {"sort": self._by, "text": "", "chosen": ()}
        errors = []
        for name, nothing in without.items():
            try:
                asked(self._columns, **{**without, name: query[name]})
            except TableQueryError as error:
                errors.append(f"{_NAMES[name]}: {error}.")
                query[name] = nothing
        accepted: TableQuery = asked(self._columns, **query)
        self.asked = replace(accepted, start=cleaned.get("start") or 0)
        if errors:
            raise forms.ValidationError(errors)
        return cleaned


_NAMES = {"sort": "sort", "text": "filter", "chosen": "column"}
