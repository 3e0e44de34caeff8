"""The comparison of a graph with torch, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings

from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.workers.models import State
from scheduler.ir.bindings import format_bindings

_MAX_NAMED = 5  # outputs named on a page; its JSON has all


class TorchOutcome(StrEnum):
    """The outcome of the comparison."""

    AGREES = "agrees"
    AGREES_IN_PART = "agrees in part"
    DIFFERS = "differs"
    NOT_COMPARED = "not compared"
    RUNNING = "running"
    WAITS = "waits"


_TONES = {
    TorchOutcome.AGREES: "ok",
    TorchOutcome.AGREES_IN_PART: "warn",
    TorchOutcome.DIFFERS: "bad",
    TorchOutcome.NOT_COMPARED: "off",
    TorchOutcome.RUNNING: "run",
    TorchOutcome.WAITS: "wait",
}


@dataclass(frozen=True)
class OutputFinding:
    """One output, or the whole graph if ``output`` is "". ``passed`` is None if it was not
    compared; an error that is not finite is None, and ``detail`` explains it."""

    output: str
    passed: bool | None
    max_error: float | None
    bound: float | None
    ratio: float | None
    detail: str

    @property
    def line(self) -> str:
        """The output with its error and bound, or with the reason why there is none."""
        if self.passed is False and self.max_error is not None and self.bound is not None:
            text = f"error {self.max_error:.2e}, bound {self.bound:.2e}"
        else:
            text = self.detail or "no finite error"
        return f"{self.output}: {text}" if self.output else text


@dataclass(frozen=True)
class TorchView:
    """The comparison of a graph with torch: ``headline`` in a few words, ``detail`` the figures or
    the reason; all findings. ``is_open``: it is running or pending."""

    outcome: TorchOutcome
    headline: str
    detail: str
    findings: tuple[OutputFinding, ...] = ()
    is_open: bool = False

    @property
    def tone(self) -> str:
        """The CSS class of the headline."""
        return _TONES[self.outcome]

    @property
    def differing(self) -> tuple[OutputFinding, ...]:
        """The outputs that differ, up to the number that a page names."""
        return tuple(row for row in self.findings if row.passed is False)[:_MAX_NAMED]

    @property
    def more_differ(self) -> int:
        """The number of differing outputs that are not named."""
        return sum(row.passed is False for row in self.findings) - len(self.differing)


def torch_view(graph: Graph, *, torch_here: bool) -> TorchView | None:
    """Return the view of a graph loaded with its ``torch_comparison`` (no queries); None before the
    graph is prepared. ``torch_here``: whether a live worker has torch."""
    row: TorchComparison | None = getattr(graph, "torch_comparison", None)
    if row is not None:
        return comparison_view(row, torch_here=torch_here)
    if graph.state != State.DONE:
        return None
    if settings.COMPARE_WITH_TORCH:
        return _not_compared("no comparison was requested: import the file again")
    return _not_compared("disabled on this site (KILN_TORCH=0)")


def comparison_view(row: TorchComparison, *, torch_here: bool = True) -> TorchView:
    if row.state == State.QUEUED:
        why = row.reason if torch_here else "none online; start one with torch"
        return TorchView(TorchOutcome.WAITS, "waiting for a worker with torch", why, (), torch_here)
    if row.state == State.RUNNING:
        return TorchView(TorchOutcome.RUNNING, "being compared with torch", "", (), is_open=True)
    if row.state != State.DONE:
        return _not_compared(row.reason)
    findings = tuple(OutputFinding(**finding) for finding in row.findings)
    passed = [finding for finding in findings if finding.passed]
    skipped = [finding for finding in findings if finding.passed is None]
    sizes = f", at {format_bindings(row.bindings)}" if row.bindings else ""
    count = f"{len(findings)} output{'s' if len(findings) != 1 else ''}"
    # Why outputs were not compared, as many reasons as fit on a line.
    reasons = "; ".join(finding.line for finding in skipped[:2])
    reasons += f"; and {len(skipped) - 2} more" if len(skipped) > 2 else ""
    if failed := len(findings) - len(passed) - len(skipped):
        outcome, detail = TorchOutcome.DIFFERS, f"{failed} of {count}{sizes}"
        headline = f"{row.oracle} differs"
    elif not passed:
        outcome, detail = TorchOutcome.NOT_COMPARED, reasons or "the model has no outputs"
        headline = f"not compared with {row.oracle}"
    else:
        ratio = max(finding.ratio or 0.0 for finding in passed)
        distance = f"at most {ratio:.2g} of the bound" if ratio else "no difference"
        detail = f"{len(passed)} of {count}, {distance}{sizes}"
        outcome, headline = TorchOutcome.AGREES, f"{row.oracle} agrees"
        if skipped:
            outcome, headline = TorchOutcome.AGREES_IN_PART, f"{row.oracle} agrees in part"
            detail += f"; not compared: {reasons}"
    return TorchView(outcome, headline, detail, findings)


def _not_compared(why: str) -> TorchView:
    return TorchView(TorchOutcome.NOT_COMPARED, "not compared with torch", why)
