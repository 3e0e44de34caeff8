"""Texts of plots for groups of trials, shortened to fit."""

from __future__ import annotations

from scheduler.tuning.trials.slices import TrialGroup


def shorten(text: str, most: int = 90) -> str:
    """Shorten and escape a text: Plotly renders some HTML, and names come from uploaded files."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def group_summary(one: TrialGroup) -> str:
    """Describe the number of trials, their times, and the outcomes of those without one."""
    others = ", ".join(f"{count} {state}" for state, count in one.others.items())
    timed = f"n = {one.n}"
    if one.best is not None and one.median is not None:
        timed += f", best {one.best:.4g} µs, median {one.median:.4g} µs"
    return timed + (f"; without a time: {others}" if others else "")
