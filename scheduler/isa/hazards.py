"""What in a kernel's resources is likely to cost time, whoever's hardware it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HazardKind(StrEnum):
    """Kinds of hazards, the worst first."""

    SPILLS = "spills"
    SCRATCH = "scratch"
    CODE_SIZE = "code size"


@dataclass(frozen=True)
class Hazard:
    """One hazard of a build, with its figures in ``text``."""

    hazard: HazardKind
    text: str
