"""What in a kernel's resources is likely to cost time, whoever's hardware it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Hazard(StrEnum):
    """Kinds of hazards, the worst first."""

    SPILLS = "spills"
    SCRATCH = "scratch"
    CODE_SIZE = "code size"


@dataclass(frozen=True)
class Caution:
    """One hazard: ``text`` says how much of it there is."""

    hazard: Hazard
    text: str
