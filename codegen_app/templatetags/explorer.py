"""The explorer's parts as HTML: what became of trials, links that filter, data for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.addresses import replace_query
from codegen_app.selectors.explorer.model import Explorer
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.trials.parameters import UNNAMED
from scheduler.tuning.trials.slices import Grid, TrialGroup

register = template.Library()
_GLYPHS = {
    CandidateState.MEASURED: "ok",
    CandidateState.MODELLED: "ok",
    CandidateState.REJECTED: "off",
    CandidateState.UNTRIED: "wait",
    CandidateState.NOT_MODELLED: "warn",
    "waiting": "wait",
}
_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}


@register.simple_tag
def outcome(state: str) -> SafeString:
    """What became of a trial, with its colour and glyph."""
    return format_html('<span class="status {}">{}</span>', _GLYPHS.get(state, "bad"), state)


@register.simple_tag(takes_context=True)
def url_of_outcome(context: Context, found: Explorer, state: str) -> str:
    """The page with the rows of one outcome alone; configurations that no candidate of a node was
    made of have a table of their own."""
    request: HttpRequest = context["request"]
    if not found.nodes and all(one.state != state for one in found.trials):
        return "#node-rejected"
    words = [_node_condition(found), _exact_condition("outcome", state)]
    show = {"show": "all"} if found.nodes else {}
    return replace_query(request, filter=" ".join(filter(None, words)), start="", **show)


@register.simple_tag(takes_context=True)
def url_of_value(context: Context, found: Explorer, name: str, value: str) -> str:
    """The page with the rows of one value of a parameter alone."""
    exact = _exact_condition(found.keys[name], "" if value == UNNAMED else value)
    words = filter(None, [_node_condition(found), exact])
    return replace_query(context["request"], filter=" ".join(words), start="")


def _node_condition(found: Explorer) -> str:
    """Of a run with several nodes the condition that a row is of this one."""
    return _exact_condition("node", found.node) if len(found.nodes) > 1 else ""


def _exact_condition(key: str, value: str) -> str:
    return f"{key}=={value.lower().replace(' ', '_')}"


@register.filter
def json_text(value: Any) -> SafeString:
    """A value as JSON within an element, for a script to read: compact, quotes as they are."""
    text = json.dumps(value, separators=(",", ":"), default=list)
    return SafeString(text.translate(_ESCAPES))


@register.filter
def grid_rows(grid: Grid) -> Iterable[tuple[str, tuple[TrialGroup | None, ...]]]:
    """The rows of a grid with their values."""
    return zip(grid.rows, grid.cells, strict=True)


@register.filter
def total(counts: Mapping[str, int]) -> int:
    """The sum of counts."""
    return sum(counts.values())
