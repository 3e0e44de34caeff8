"""The tour: a few pages in order, each with a note on what it answers. ``?tour=`` in an address is
the number of the step; without it there is no note."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TourStep:
    """A page of the tour: its name, which the site resolves to an address, and the note on it."""

    page: str
    title: str
    text: str


TOUR = (
    TourStep(
        "overview",
        "Overview",
        "One graph: how long it takes, which kernels take the time, how far they are from the"
        " roofline, and what became slower. Below it, the alerts and runs of the whole site.",
    ),
    TourStep(
        "graph",
        "A graph",
        "The model after fusion: each scheduled node is one kernel call. Select a node in the"
        " drawing to see its row in the table, and colour the drawing by time.",
    ),
    TourStep(
        "kernel",
        "A kernel",
        "Source beside the instructions that were compiled from it. Hover over a line to highlight"
        " its instructions, click to pin it. Registers and occupancy are given for each target.",
    ),
    TourStep(
        "run",
        "A tuning run",
        "What was tried on a device, what was rejected at which stage and why, and the selected"
        " candidate.",
    ),
    TourStep(
        "alert",
        "A regression",
        "What became slower, at which revision, by how much (with interval and n), and the cause:"
        " code, tuning choice, compiler or environment.",
    ),
    TourStep(
        "figures",
        "Kinds of figures",
        "Every time says where it comes from. Figures of different kinds are never added or"
        " compared. Press ? on any page for its keys, and Ctrl K to find anything.",
    ),
)
