"""Render tables as HTML: the bar above one, its sortable headings, its cells."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from codegen_app.web.addresses import replace_query
from codegen_app.web.tables import Column, Kind, Table
from codegen_app.web.templatetags import kiln

register = template.Library()
# The start of a list's page, by position or by a row: sorting or filtering a list resets it.
_POSITION_PARAMS = ("start", "below", "above", "after")
_RESET_POSITION = dict.fromkeys(_POSITION_PARAMS, "")
_NUMBER = SafeString(' class="num"')
_CODE = SafeString(' class="code"')
_CLASSES = {Kind.CODE: _CODE, Kind.KERNEL: _CODE}


@register.inclusion_tag("web/table/bar.html", takes_context=True)
def table_bar(
    context: Context,
    table: Table[Any],
    example: str = "",
    label: str = "",
    beside: str = "",
    counted: bool = True,
) -> dict[str, Any]:
    """The filter, the choice of columns, the number of rows if ``counted``, and the TSV link.
    ``label`` is the filter's name for screen readers; ``beside`` is the name of the page's own
    filter, which the key f focuses instead if there is one."""
    request = context["request"]
    chosen = {column.key for column in table.chosen}
    return {
        "table": table,
        "example": example,
        "label": label,
        "beside": beside,
        "counted": counted,
        "key": "" if beside else ". Key f",
        "columns": [(column, column.key in chosen) for column in table.columns],
        "request": request,
        "whole": replace_query(request, filter="", **_RESET_POSITION),
        "usual": replace_query(request, column=""),
        "tsv": replace_query(request, **{"as": "tsv", **_RESET_POSITION}),
    }


@register.simple_tag(takes_context=True)
def hidden_others(context: Context, *excluded: str) -> SafeString:
    """Render the address's parameters except these as hidden fields of a form; ``places`` stands
    for the parameters that hold the start of the list."""
    field = '<input type="hidden" name="{}" value="{}">'
    left_out = {*excluded, "as", *(_POSITION_PARAMS if "places" in excluded else ())}
    lists = context["request"].GET.lists()
    params = ((key, value) for key, values in lists if key not in left_out for value in values)
    return format_html_join("", field, params)


@register.simple_tag(takes_context=True)
def without_table(context: Context) -> str:
    """Return the page's address without the table's parameters, keeping those that filter the
    list."""
    table = dict.fromkeys(("sort", "filter", "column", "as"), "")
    return replace_query(context["request"], **table, **_RESET_POSITION)


@register.simple_tag(takes_context=True)
def table_head(context: Context, table: Table[Any]) -> SafeString:
    """Render the headings, each a link that sorts by its column: numbers descending first, then
    ascending. The table's name tells screen readers how it is sorted."""
    return format_html_join(
        "", "{}", ((_heading(context["request"], table, column),) for column in table.chosen)
    )


def _heading(
    request: HttpRequest, table: Table[Any], column: Column[Any], content: SafeString | str = ""
) -> SafeString:
    is_sorted = table.asked.sort == column.key
    descending = not table.asked.descending if is_sorted else column.kind.is_number
    way = "descending" if table.asked.descending else "ascending"
    return format_html(
        '<th scope="col"{}{}><a href="{}" title="Sort {}">{}{}</a></th>',
        _NUMBER if column.kind.is_number else "",
        format_html(' aria-sort="{}"', way) if is_sorted else "",
        replace_query(request, sort=f"{'-' if descending else ''}{column.key}", **_RESET_POSITION),
        ("descending" if descending else "ascending") + (f": {column.note}" if column.note else ""),
        content or column.title,
        format_html(' <span class="unit">{}</span>', column.unit)
        if column.unit and not content
        else "",
    )


@register.simple_block_tag(takes_context=True)
def heading(context: Context, content: SafeString, key: str, css: str = "") -> SafeString:
    """Render the heading of a column whose cells the page writes itself; empty if it is hidden. In
    a table without parameters it is a plain heading of the class ``css``."""
    table = context.get("table")
    if table is None:
        css_class = format_html(' class="{}"', css) if css else ""
        return format_html('<th scope="col"{}>{}</th>', css_class, content)
    column = next((column for column in table.chosen if column.key == key), None)
    return (
        SafeString("") if column is None else _heading(context["request"], table, column, content)
    )


@register.simple_block_tag(takes_context=True)
def cell(context: Context, content: SafeString, key: str) -> SafeString:
    """Render a cell of such a column."""
    table = context.get("table")
    is_shown = table is None or any(column.key == key for column in table.chosen)
    return content if is_shown else SafeString("")


@register.simple_tag(takes_context=True)
def table_cell(context: Context, key: str, row: Any) -> SafeString:
    """Render a standard cell among custom ones."""
    table = context["table"]
    column = next((column for column in table.chosen if column.key == key), None)
    return SafeString("") if column is None else _cell(column, row)


@register.simple_tag
def table_cells(table: Table[Any], row: Any) -> SafeString:
    """Render the cells of a row."""
    return format_html_join("", "{}", ((_cell(column, row),) for column in table.chosen))


def _cell(column: Column[Any], row: Any) -> SafeString:
    css = _NUMBER if column.kind.is_number else _CLASSES.get(column.kind, "")
    hover = column.hover(row) if column.hover else ""
    after = column.after(row) if column.after else ""
    is_emulated = column.emulated is not None and column.emulated(row)
    text = format_value(column.kind, column.value(row))
    if url := column.link(row) if column.link and text else "":
        text = format_html('<a href="{}">{}</a>', url, text)
    return format_html(
        "<td{}{}>{}{}{}</td>",
        css,
        format_html(' title="{}"', hover) if hover else "",
        text,
        format_html(' <span class="note">{}</span>', after) if after else "",
        format_html(" {}", kiln.emulated(flag=True)) if is_emulated else "",
    )


_FORMATS: dict[Kind, Callable[[Any], SafeString | str]] = {
    Kind.TIME: kiln.microseconds,
    Kind.SHARE: partial(kiln.grouped, digits=1),
    Kind.RATIO: partial(kiln.grouped, digits=3),
    Kind.WHOLE: kiln.grouped,
    Kind.KERNEL: kiln.kernel_name,
    Kind.STATE: kiln.status,
}


def format_value(kind: Kind, value: Any) -> SafeString | str:
    """Format a value for display; empty for None."""
    if value is None:
        return ""
    if kind in _FORMATS:
        return _FORMATS[kind](value)
    return kiln.ago(value) if isinstance(value, datetime) else str(value)
