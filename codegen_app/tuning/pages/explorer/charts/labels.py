"""Texts of plots for groups of trials, shortened to fit."""

from __future__ import annotations

from scheduler.tuning.trials.slices import TrialGroup


def shorten(text: str, most: int = 90) -> str:
    """Shorten and escape a text: Plotly renders some HTML, and names come from uploaded files."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def group_summary(group: TrialGroup) -> str:
    """Describe the number of trials, their times, and the outcomes of those without one."""
    others = ", ".join(f"{count} {state}" for state, count in group.others.items())
    timed = f"n = {group.n}"
    if group.best is not None and group.median is not None:
        timed += f", best {group.best:.4g} µs, median {group.median:.4g} µs"
    return timed + (f"; without a time: {others}" if others else "")
