"""The kinds of figures on pages: where a figure comes from, and what it may be compared with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure; ``name`` is its label."""

    name: str
    meaning: str
    comparable: str


MEASURED = FigureKind(
    "measured",
    "Timed on a device of this installation after the result was checked, or sent by the program"
    " that measured it. Figures without a label are measured.",
    "Times of the same device model, target, compiler and sizes",
)
RECORDED = FigureKind(
    "recorded",
    "Measured on another machine and imported with device, driver, date and Kiln version.",
    "Recorded times of the same device model, target, compiler and sizes",
)
EMULATED = FigureKind(
    "emulated",
    "Timed on the CPU emulation, which runs the same source without a GPU.",
    "Emulated times only: they say nothing about a GPU",
)
MODELLED = FigureKind(
    "modelled",
    "Computed from a kernel's instructions by a model of a GPU. Nothing was run.",
    "Modelled times of the same board; a range, from the low to the high ends of its constants",
)
GENERATED = FigureKind(
    "generated",
    "Written by a program, with known changes and causes, to try the detection of changes."
    " Nothing was measured.",
    "Nothing",
)
FIGURE_KINDS = (MEASURED, RECORDED, EMULATED, MODELLED, GENERATED)
