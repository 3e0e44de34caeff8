"""What can be measured for a change: whether it can be retuned and re-measured, else why not."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.graphs.models import TemplateNode
from codegen_app.tracking.models import Change
from codegen_app.tracking.queries.remeasurable import (
    blocked_reason,
    device_models,
    points_with_builds,
)

_GENERATED = "the values were generated, not measured"


@dataclass(frozen=True)
class ChangeActions:
    """The addresses that retune the problem and re-measure both sides; "" if that is not possible,
    for the reason."""

    retune_url: str
    not_retuned: str
    remeasure_url: str
    not_remeasured: str


def change_actions(change: Change) -> ChangeActions:
    """Return the actions of a change with its series (3 queries; 1 for the problem of another
    program)."""
    models = device_models()
    node, not_retuned = _tunable_node(change, models)
    not_remeasured = _not_remeasured(change, models)
    return ChangeActions(
        retune_url=_retune_url(change, node) if node and not not_retuned else "",
        not_retuned=not_retuned,
        remeasure_url="" if not_remeasured else reverse("remeasure_alert", args=[change.alert_id]),
        not_remeasured=not_remeasured,
    )


def _retune_url(change: Change, node: TemplateNode) -> str:
    query = urlencode({"node": node.pk, "target": change.series.target})
    return f"{reverse('retune')}?{query}"


def _tunable_node(change: Change, models: set[tuple[str, str]]) -> tuple[TemplateNode | None, str]:
    """Return the newest node of the problem, and why it cannot be tuned now (1 query)."""
    series = change.series
    if series.is_generated:
        return None, _GENERATED
    if series.own_problem_id is None:
        return None, "another program measured this problem: Kiln has no kernels for it"
    nodes = TemplateNode.objects.filter(problem=series.own_problem_id)
    node = nodes.order_by("-graph", "position").first()
    if node is None:
        return None, "no imported graph has this problem: import its model again"
    if all(target != series.target for target, _ in models):
        return node, f"no worker for {series.target} is online"
    return node, ""


def _not_remeasured(change: Change, models: set[tuple[str, str]]) -> str:
    """Return why both sides cannot be measured again; "" if they can (1 query)."""
    series = change.series
    if series.is_generated:
        return _GENERATED
    if change.alert_id is None:
        return "no alert was raised for this change"
    if change.withdrawn_at is not None:
        return "later points no longer show this change"
    if series.own_problem_id is None:
        return ""  # its senders are asked
    times = points_with_builds([series.pk]).order_by("at").values_list("at", flat=True)
    has_before = times.filter(at__lt=change.at).exists()
    has_after = times.filter(at__gte=change.at).exists()
    return blocked_reason(series, has_before, has_after, models)
