"""The comparison of a graph with torch, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
        return tuple(one for one in self.findings if one.passed is False)[:_MAX_NAMED]

    @property
    def more_differ(self) -> int:
        """The number of differing outputs that are not named."""
        return sum(one.passed is False for one in self.findings) - len(self.differing)


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
    """Return the view of one row."""
    if row.state == State.QUEUED:
        why = row.reason if torch_here else "none online; start one with torch"
        return TorchView(TorchOutcome.WAITS, "waiting for a worker with torch", why, (), torch_here)
    if row.state == State.RUNNING:
        return TorchView(TorchOutcome.RUNNING, "being compared with torch", "", (), is_open=True)
    if row.state != State.DONE:
        return _not_compared(row.reason)
    return _done(row.oracle, row.bindings, tuple(OutputFinding(**one) for one in row.findings))


def _not_compared(why: str, oracle: str = "torch") -> TorchView:
    return TorchView(TorchOutcome.NOT_COMPARED, f"not compared with {oracle}", why)


def _done(
    oracle: str, bindings: Mapping[str, Any], findings: tuple[OutputFinding, ...]
) -> TorchView:
    agree = [one for one in findings if one.passed]
    left_out = [one for one in findings if one.passed is None]
    at = f", at {format_bindings(bindings)}" if bindings else ""
    count = f"{len(findings)} output{'s' if len(findings) != 1 else ''}"
    if len(agree) + len(left_out) < len(findings):
        differ = len(findings) - len(agree) - len(left_out)
        detail = f"{differ} of {count}{at}"
        return TorchView(TorchOutcome.DIFFERS, f"{oracle} differs", detail, findings)
    if not agree:
        why = _skipped_reasons(left_out) or "the model has no outputs"
        return TorchView(TorchOutcome.NOT_COMPARED, f"not compared with {oracle}", why, findings)
    detail = f"{len(agree)} of {count}, {_furthest(agree)}{at}"
    if not left_out:
        return TorchView(TorchOutcome.AGREES, f"{oracle} agrees", detail, findings)
    detail += f"; not compared: {_skipped_reasons(left_out)}"
    return TorchView(TorchOutcome.AGREES_IN_PART, f"{oracle} agrees in part", detail, findings)


def _furthest(agree: Sequence[OutputFinding]) -> str:
    ratio = max(one.ratio or 0.0 for one in agree)
    return f"at most {ratio:.2g} of the bound" if ratio else "no difference"


def _skipped_reasons(findings: Sequence[OutputFinding]) -> str:
    """Return why outputs were not compared, as many reasons as fit on a line."""
    lines = [one.line for one in findings]
    more = len(lines) - 2
    return "; ".join(lines[:2]) + (f"; and {more} more" if more > 0 else "")
