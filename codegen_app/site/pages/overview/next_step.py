"""The recommended next step: the first missing setup step, or the most expensive problem."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.accounts import permissions
from codegen_app.site.pages.overview.changes import OverviewChanges
from codegen_app.site.pages.overview.summary import OverviewSummary
from codegen_app.workers.models import OPEN_STATES, State


@dataclass(frozen=True)
class NextStep:
    """A step, its reason, and its button; ``permission`` is the one it requires, "" for none.
    ``command`` is the equivalent command, if there is one."""

    text: str
    why: str
    url: str
    button: str
    permission: str = ""
    command: str = ""


@dataclass(frozen=True)
class FirstStep:
    """One of the first three steps: whether it is done, and how to do it."""

    title: str
    is_done: bool
    text: str
    command: str
    url: str = ""
    link: str = ""
    permission: str = ""


_EXPORT = 'torch.export.save(torch.export.export(model, args), "model.pt2")'


def first_steps(summary: OverviewSummary | None) -> tuple[FirstStep, ...]:
    """Return a newcomer's steps in order; none once a graph has times."""
    if summary is not None and summary.measured.measured:
        return ()
    graph = summary.graph if summary else "GRAPH"
    prepared = summary is not None and summary.state == State.DONE
    return (
        FirstStep(
            "Save a model",
            summary is not None,
            "In Python, on the machine with the model. Kiln reads the file without executing it.",
            _EXPORT,
        ),
        FirstStep(
            "Import the model",
            summary is not None,
            "Kiln generates several kernels for each node and compiles them.",
            "kiln manage import_graph model.pt2",
            reverse("import"),
            "Drop the file here",
            permissions.IMPORT,
        ),
        FirstStep(
            "Measure the kernels",
            False,
            "A tuning run checks and measures the kernels on a device, or on the CPU emulation."
            + ("" if prepared or summary is None else " The graph is still being prepared."),
            f"kiln manage retune {graph}",
            f"{reverse('retune')}?{urlencode({'graph': graph})}" if summary else "",
            "Start a run",
            permissions.RETUNE,
        ),
    )


def next_step(
    summary: OverviewSummary | None, changes: OverviewChanges, *, alive: bool
) -> NextStep | None:
    """Return the most urgent step; None on an empty site, which shows the first steps instead.
    ``alive``: a worker is available."""
    if summary is None:
        return None
    if changes.worst_regressions:
        alert = changes.worst_regressions[0]
        text = f"Review {changes.regressions} open regression"
        text += "s" if changes.regressions > 1 else ""
        why = f"Start with {alert.revision}" + (" (generated history)" if alert.generated else "")
        return NextStep(text, why, alert.url, "Open the alert")
    if summary.state in OPEN_STATES and not alive:
        why = "The graph is queued for preparation, and no worker is online"
        return NextStep("Start a worker", why, reverse("devices"), "Workers and devices")
    if summary.state in (State.REJECTED, State.QUARANTINED):
        why = "Its kernels could not be generated"
        return NextStep(f"See why {summary.name} failed", why, summary.url, "Open the graph")
    if summary.state in OPEN_STATES:
        why = "Its kernels are being generated"
        return NextStep(
            f"Watch the preparation of {summary.name}", why, summary.url, "Open the graph"
        )
    measured, top = summary.measured, summary.top
    if measured.with_kernel and not measured.is_whole:
        missing = measured.with_kernel - measured.measured
        return NextStep(
            f"Measure the remaining {missing} node{'s' if missing > 1 else ''}"
            if measured.measured
            else f"Measure the kernels of {summary.name}",
            f"{measured} nodes measured; missing: {measured.missing_text}",
            f"{reverse('retune')}?{urlencode({'graph': summary.graph})}",
            "Start a run",
            permissions.RETUNE,
            f"kiln manage retune {summary.graph}",
        )
    if top is not None:
        tuned = (
            "the fastest kernel tried so far is selected"
            if top.selected
            else "no kernel has beaten the default"
        )
        return NextStep(
            f"Search for a faster {top.name}",
            f"{100 * top.share:.1f}% of the measured time; {tuned}",
            f"{reverse('retune')}?{urlencode({'node': top.id})}",
            f"Retune {top.name}",
            permissions.RETUNE,
        )
    return None
