"""The recommended next step for a graph: the first missing setup step, or its largest problem."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.accounts import permissions
from codegen_app.site.pages.overview.summary import OverviewSummary
from codegen_app.workers.models import OPEN_STATES, State
from codegen_app.workers.rows import WorkerRow


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
    if summary is not None and summary.ranking.measured.measured:
        return ()
    graph = summary.ranking.graph if summary else "GRAPH"
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
            "Import a file",
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


def next_step(summary: OverviewSummary | None, workers: Iterable[WorkerRow]) -> NextStep | None:
    """Return a graph's most urgent step; None on an empty site, which shows the first steps
    instead."""
    if summary is None:
        return None
    if regressions := summary.current_regressions:
        text = f"Review {len(regressions)} open regression{'s' if len(regressions) > 1 else ''}"
        why = f"Start with {regressions[0].revision}"
        return NextStep(text, why, regressions[0].url, "Open the alert")
    alive = [worker for worker in workers if worker.alive]
    if summary.state != State.DONE:
        return _preparation_step(summary, is_worker_online=bool(alive))
    return _measuring_step(
        summary, {device.get("target") for row in alive for device in row.devices}
    )


def _preparation_step(summary: OverviewSummary, *, is_worker_online: bool) -> NextStep | None:
    name, url = summary.ranking.name, summary.ranking.url
    if summary.state not in OPEN_STATES:
        why = "Its kernels could not be generated"
        return NextStep(f"See why {name} failed", why, url, "Open the graph")
    if not is_worker_online:
        why = "The graph is queued for preparation, and no worker is online"
        return NextStep("Start a worker", why, reverse("devices"), "Workers and devices")
    why = "Its kernels are being generated"
    return NextStep(f"Watch the preparation of {name}", why, url, "Open the graph")


def _measuring_step(
    summary: OverviewSummary, targets_here: Collection[str | None]
) -> NextStep | None:
    """Return the step of a prepared graph: its next run, or its hottest kernel if no worker here
    can measure where its times are from."""
    ranking = summary.ranking
    measured, bucket, hottest = ranking.measured, ranking.bucket, ranking.hottest
    if hottest is not None and bucket is not None and bucket.target not in targets_here:
        of_limit = (
            f", {100 * hottest.roofline:.0f}% of the roofline"
            if hottest.roofline is not None
            else ""
        )
        return NextStep(
            "Read the hottest kernel",
            f"{100 * (hottest.share or 0):.1f}% of the measured time{of_limit}. No worker with"
            f" {bucket.target} is online, so it cannot be measured again here",
            hottest.page_url,
            "Open the kernel",
        )
    if measured.with_kernel and not measured.is_whole:
        missing = measured.with_kernel - measured.measured
        return NextStep(
            f"Measure the remaining {missing} node{'s' if missing > 1 else ''}"
            if measured.measured
            else f"Measure the kernels of {ranking.name}",
            f"{measured} nodes measured; missing: {measured.missing_text}",
            f"{reverse('retune')}?{urlencode({'graph': ranking.graph})}",
            "Start a run",
            permissions.RETUNE,
            f"kiln manage retune {ranking.graph}",
        )
    if hottest is None:
        return None
    tuned = (
        "the fastest kernel tried so far is selected"
        if hottest.selected
        else "no kernel has beaten the default"
    )
    node = hottest.calls[0]
    return NextStep(
        f"Search for a faster {hottest.title}",
        f"{100 * (hottest.share or 0):.1f}% of the measured time; {tuned}",
        f"{reverse('retune')}?{urlencode({'node': node.id})}",
        f"Retune {node.name}",
        permissions.RETUNE,
    )
