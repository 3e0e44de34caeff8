"""Render an explorer's parts: outcomes of trials, links that filter, data for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.tuning.pages.explorer.model import Explorer
from codegen_app.web.addresses import replace_query
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
    """Render the outcome of a trial with its colour and glyph."""
    return format_html('<span class="status {}">{}</span>', _GLYPHS.get(state, "bad"), state)


@register.simple_tag(takes_context=True)
def url_of_outcome(context: Context, explorer: Explorer, state: str) -> str:
    """Return the page filtered to one outcome; configurations without a candidate of the node have
    their own table."""
    request: HttpRequest = context["request"]
    if not explorer.nodes and all(trial.state != state for trial in explorer.trials):
        return "#node-rejected"
    words = [_node_condition(explorer), _exact_condition("outcome", state)]
    show = {"show": "all"} if explorer.nodes else {}
    return replace_query(request, filter=" ".join(filter(None, words)), start="", **show)


@register.simple_tag(takes_context=True)
def url_of_value(context: Context, explorer: Explorer, name: str, value: str) -> str:
    """Return the page filtered to one value of a parameter."""
    exact = _exact_condition(explorer.keys[name], "" if value == UNNAMED else value)
    words = filter(None, [_node_condition(explorer), exact])
    return replace_query(context["request"], filter=" ".join(words), start="")


def _node_condition(explorer: Explorer) -> str:
    """Return the condition that selects this node's rows; "" unless the run has several nodes."""
    return _exact_condition("node", explorer.node) if len(explorer.nodes) > 1 else ""


def _exact_condition(key: str, value: str) -> str:
    return f"{key}=={value.lower().replace(' ', '_')}"


@register.filter
def json_text(value: Any) -> SafeString:
    """Encode a value as compact JSON within an element, for a script; quotes are not escaped."""
    text = json.dumps(value, separators=(",", ":"), default=list)
    return SafeString(text.translate(_ESCAPES))


@register.filter
def grid_rows(grid: Grid) -> Iterable[tuple[str, tuple[TrialGroup | None, ...]]]:
    """Return the rows of a grid with their values."""
    return zip(grid.rows, grid.cells, strict=True)


@register.filter
def total(counts: Mapping[str, int]) -> int:
    """Return the sum of counts."""
    return sum(counts.values())
